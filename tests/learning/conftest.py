"""What all tests of training share."""

import pytest


@pytest.fixture(autouse=True)
def _measured_anew(monkeypatch):
    """Let every engine measure its mode itself: no test depends on one before it."""
    monkeypatch.setenv("FEDCOHORT_CACHE", "off")
