"""Who owns what: data sets and partitions."""

from fedcohort.data.dataset import Dataset
from fedcohort.data.download import DataNotFound, Progress
from fedcohort.data.locate import DATASETS, load
from fedcohort.data.partition import PARTITIONS, label_counts
from fedcohort.data.split import reserve

__all__ = [
    "DATASETS",
    "PARTITIONS",
    "DataNotFound",
    "Dataset",
    "Progress",
    "label_counts",
    "load",
    "reserve",
]
