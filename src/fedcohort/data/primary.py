"""The paper's non-iid partition: most of a client's samples bear one label."""

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Ints
from fedcohort.checks import check_range
from fedcohort.data.sizes import Sizes, client_sizes, some_labels


def primary_label(
    labels: npt.ArrayLike,
    num_clients: int,
    rng: np.random.Generator,
    *,
    share: float = 0.8,
    overlap: bool = False,
    samples_per_client: Sizes = None,
) -> list[Ints]:
    """Draw one primary label for each client, take 0.8 of its samples from it and 0.2 from the others, at random.

    Disjoint: where a label has run out, the rest of the share comes from labels that still have samples, in proportion to what
    they have; so when all data is dealt out, some clients own less than 0.8 of their label, and the last may own more.
    All primary shares are dealt before any other, in random order, so that a shortage does not follow the clients' numbers.
    overlap=True refills a label that has run out, as the paper's base simulator does: every share is exact, but a sample may
    have several owners (never one owner twice), so that one client's test data may be another's training data.
    """
    labels = some_labels(labels)
    check_range("share", share, 0, 1)
    sizes = client_sizes(len(labels), num_clients, samples_per_client, reuse=overlap)
    order = rng.permutation(len(labels))
    order = order[
        np.argsort(labels[order], kind="stable")
    ]  # label after label, shuffled within each
    supply = np.unique(labels[order], return_counts=True)[1]
    start = np.cumsum(supply) - supply
    used = np.zeros_like(supply)

    def left() -> Ints:
        return supply if overlap else supply - used

    def take(counts: Ints) -> Ints:
        picks = [
            order[start[j] + (used[j] + np.arange(counts[j])) % supply[j]]
            for j in np.flatnonzero(counts)
        ]
        np.add(used, counts, out=used)
        return np.concatenate([np.empty(0, np.int64), *picks])

    primary = rng.integers(len(supply), size=num_clients)
    shares = np.rint(share * sizes).astype(np.int64)
    if overlap:
        _require(supply, primary, sizes, shares)
    own = np.eye(len(supply), dtype=np.int64)[primary]
    parts = [np.empty(0, np.int64)] * num_clients
    for i in rng.permutation(num_clients):
        parts[i] = take(own[i] * min(shares[i], left()[primary[i]]))
    for i in rng.permutation(num_clients):
        others = left() * (1 - own[i])
        lacking = sizes[i] - len(parts[i])
        drawn = rng.multivariate_hypergeometric(others, min(lacking, others.sum()))
        parts[i] = np.sort(
            np.concatenate([parts[i], take(drawn + own[i] * (lacking - drawn.sum()))])
        )
    return parts


def _require(supply: Ints, primary: Ints, sizes: Ints, shares: Ints) -> None:
    """Refuse a share that a client could fill only by owning a sample twice."""
    short = (shares > supply[primary]) | (sizes - shares > supply.sum() - supply[primary])
    if short.any():
        i = int(short.argmax())
        raise ValueError(
            f"samples_per_client must leave each client with distinct samples, but {shares[i]} of one label and"
            f" {sizes[i] - shares[i]} of the others are more than the {supply[primary[i]]} and"
            f" {supply.sum() - supply[primary[i]]} there are"
        )
