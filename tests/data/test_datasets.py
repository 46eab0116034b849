import re
import subprocess
import sys

import numpy as np
import pytest

from fedcohort.data import DATASETS, DataNotFound, load


def test_importing_the_package_needs_numpy_alone():
    code = (
        "import sys, fedcohort.data; heavy = {'sklearn', 'torch', 'matplotlib', 'rich'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout
        == "[]\n"
    )


@pytest.mark.parametrize("name", sorted(set(DATASETS) - {"digits", "nist-letters-mix"}))
def test_what_is_nowhere_says_where_it_looked_and_which_file_to_put_where(tmp_path, name):
    with pytest.raises(DataNotFound) as caught:
        load(name, tmp_path, download=False)
    message = str(caught.value)
    assert message.startswith(
        f"{name} is in none of the data directories {tmp_path}, {tmp_path / 'cache' / 'fedcohort'}"
    )
    found = re.findall(
        r"download (https://\S+) elsewhere and put the file as (\S+) "
        r"into the directory (\S+?)(?:;|$)",
        message,
    )
    assert found
    for url, file, folder in found:
        assert url.endswith(f"/{file}")
        assert folder == str(tmp_path / name)


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(
        ValueError, match=r"dataset must be one of digits, cifar10, .* did you mean 'cifar10'"
    ):
        load("cifar-10")


def test_a_path_that_ends_in_npz_is_loaded(tmp_path):
    np.savez(tmp_path / "own.npz", x=np.zeros((3, 2)), y=np.array([0, 1, 1]))
    data = load(tmp_path / "own.npz")
    assert (data.name, data.num_classes, len(data.y)) == ("own", 2, 3)
