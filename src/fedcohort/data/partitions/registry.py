"""The one list of partitions, read by the command line, the laboratory and the tests."""

from collections.abc import Callable

from fedcohort.arrays import Ints
from fedcohort.data.partitions.by_client import by_client
from fedcohort.data.partitions.dirichlet import dirichlet
from fedcohort.data.partitions.iid import iid
from fedcohort.data.partitions.independent_label import independent_label
from fedcohort.data.partitions.primary_label import primary_label
from fedcohort.data.partitions.shards import shards

PARTITIONS: dict[str, Callable[..., list[Ints]]] = {
    "iid": iid,
    "primary-label": primary_label,
    "independent-label": independent_label,
    "dirichlet": dirichlet,
    "shards": shards,
    "by-client": by_client,
}
