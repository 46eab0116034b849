"""A published dataset: the forms of its files, and where to download them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from fedcohort.data.dataset import Dataset


@dataclass(frozen=True)
class RemoteFile:
    """A published file.

    Attributes:
        url: Its address.
        checksum: Its checksum, as `md5:...` or `sha256:...`.
    """

    url: str
    checksum: str

    @property
    def name(self) -> str:
        """The last part of the address."""
        return self.url.rpartition("/")[2]


@dataclass(frozen=True)
class FileForm:
    """One form in which a dataset is published.

    Attributes:
        names: Names of its files. Each may be gzipped, which adds .gz to its name.
        parse: Makes the dataset from the content of the files.
        archives: Names of archives that may hold the files.
    """

    names: tuple[str, ...]
    parse: Callable[[Mapping[str, bytes]], Dataset]
    archives: tuple[str, ...] = ()


@dataclass(frozen=True)
class Source:
    """A published dataset.

    Attributes:
        name: Its name in `DATASETS`.
        folders: Folders of a data directory that may hold it. The first one receives downloads.
            `.` is among them only if no other dataset has files of the same names.
        forms: Its forms. The first one is downloaded.
        remotes: The files to download.
    """

    name: str
    folders: tuple[str, ...]
    forms: tuple[FileForm, ...]
    remotes: tuple[RemoteFile, ...]
