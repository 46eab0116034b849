"""WHO OWNS WHAT: datasets, and partitions that divide their samples among the clients."""

from fedcohort.data.dataset import Dataset
from fedcohort.data.download import DataNotFound, OnProgress
from fedcohort.data.holdout import reserve
from fedcohort.data.partitions.counts import label_counts
from fedcohort.data.partitions.registry import PARTITIONS
from fedcohort.data.registry import DATASETS, load

__all__ = [
    "DATASETS",
    "PARTITIONS",
    "DataNotFound",
    "Dataset",
    "OnProgress",
    "label_counts",
    "load",
    "reserve",
]
