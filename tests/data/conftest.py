import pytest
from hypothesis import settings

settings.register_profile("data", deadline=None, derandomize=True, max_examples=150)
settings.load_profile("data")


@pytest.fixture(autouse=True)
def empty_data_directories(monkeypatch, tmp_path):
    """Hide the datasets of this machine: no variable is set, cache and system are empty."""
    monkeypatch.delenv("FEDCOHORT_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("fedcohort.data.directories.SYSTEM", tmp_path / "system")
