"""A mix of handwritten letters from public derivatives of NIST Special Database 19.

It is not EMNIST-Letters: the writers, the counts of each letter and the preparation of the
images differ. Results on it stand under its own name and are not compared with the paper's.
"""

from pathlib import Path

from fedcohort.data.dataset import Dataset
from fedcohort.data.directories import data_directories
from fedcohort.data.download import DataNotFound, OnProgress
from fedcohort.data.npz import read_npz

NAME = "nist-letters-mix"
FILE = f"{NAME}.npz"


def nist_letters_mix(
    data_dir: Path | None, download: bool = True, on_progress: OnProgress | None = None
) -> Dataset:
    """Return 26 classes of upright letters, white on black, upper and lower case as one.

    Nobody publishes the file at one address, so it is never downloaded.

    Args:
        data_dir: The directory to search first, if any.
        download: Ignored.
        on_progress: Ignored.

    Returns:
        The dataset, without a test set.

    Raises:
        DataNotFound: If no data directory has the file.
        ValueError: If the file is damaged.
    """
    directories = data_directories(data_dir)
    for directory in directories:
        file = directory / FILE
        if file.is_file():
            arrays = read_npz(file)
            return Dataset(NAME, arrays["x"][:, None], arrays["y"], num_classes=26)
    searched = ", ".join(str(directory) for directory in directories)
    raise DataNotFound(
        f"{NAME} is in none of the data directories {searched}, and nobody publishes it: "
        f"put the file {FILE} with images x [N, 28, 28] and labels y from 0 to 25 into one of them"
    )
