"""The defaults of every selector: checks, the cohort in flight, `join` and states.

A scheme subclasses `BaseSelector` and writes its constructor, `choose` and, if it learns,
`learn`. What it needs or offers beyond that it declares in class attributes.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from fedcohort.arrays import Bools, Floats, Ints, State
from fedcohort.checks import check_int
from fedcohort.rng import RngLike, as_rng, batch_shape, rng_state, set_rng_state
from fedcohort.selection.allocation import Allocation
from fedcohort.selection.availability import present_mask, reachable_size
from fedcohort.selection.cohort_checks import check_reports, make_cohort
from fedcohort.selection.protocol import Cohort, Outcome, check_answers
from fedcohort.selection.state import CONFIG_KEYS, Bounds, check_config, read_arrays, read_cohort


class BaseSelector:
    """What all selectors share; a scheme adds `choose` and, if it learns, `learn`.

    Args:
        num_clients: Number of clients in the federation, K.
        cohort_size: Number of clients to ask in each round, k.
        rng: Seed, generator, or a sequence of seeds for runs in lock-step.

    Attributes:
        needs_losses: Whether `update` needs the losses that clients report.
        needs_seconds: Whether `update` needs how long the server waited for each client.
        needs_norms: Whether `update` needs the lengths of the updates.
        needs_data_sizes: Whether the constructor needs the clients' numbers of samples.
        needs_deadline: Whether the constructor needs the deadline of a round.
        probes_losses: Whether the constructor needs a function that returns clients' losses.
        has_inclusion: Whether `allocation` says every client's inclusion probability.
        ranks_candidates: Whether `Cohort.inclusion` is only the chance of being a candidate.
        draws_exactly: Whether the draw asks clients with their inclusion probabilities.
        client_arrays: Names of the arrays [..., K] that hold what the scheme knows of each
            client. States contain them, and `join` extends them.
        newcomer_values: What these arrays hold for a client that joins, by name; the mean of the
            others where a name is missing.
        run_arrays: Names of the arrays [...] with one value per run. States contain them.
        array_bounds: Smallest and largest value of an array in a state, by its name.
        in_flight: Names of the values that `choose` leaves for `learn`. States contain them
            between `select` and `update`; otherwise they are None.
        enough: Number of answers at which the round closes; None waits for all. Flower counts
            valid answers, `play` all that arrive.
        asked: The cohort that waits for its outcome, or None.

    Raises:
        ValueError: If a size is out of bounds.

    Examples:
        >>> class FirstClients(BaseSelector):
        ...     def choose(self, round, size, present):
        ...         clients = smallest(np.arange(self.num_clients), size, present)
        ...         return clients, np.ones(clients.shape)
        >>> from fedcohort.selection.availability import smallest
        >>> FirstClients(10, 3, rng=0).select(0, available=[1, 4, 6, 9]).clients
        array([1, 4, 6])
    """

    needs_losses: ClassVar[bool] = False
    needs_seconds: ClassVar[bool] = False
    needs_norms: ClassVar[bool] = False
    needs_data_sizes: ClassVar[bool] = False
    needs_deadline: ClassVar[bool] = False
    probes_losses: ClassVar[bool] = False
    has_inclusion: ClassVar[bool] = False
    ranks_candidates: ClassVar[bool] = False
    client_arrays: ClassVar[tuple[str, ...]] = ()
    newcomer_values: ClassVar[Mapping[str, float]] = {}
    run_arrays: ClassVar[tuple[str, ...]] = ()
    array_bounds: ClassVar[Bounds] = {}
    in_flight: ClassVar[tuple[str, ...]] = ()
    draws_exactly: bool = True
    enough: int | None = None
    asked: Cohort | None

    def __init__(self, num_clients: int, cohort_size: int, *, rng: RngLike) -> None:
        self.num_clients = check_int("num_clients", num_clients, 1)
        self.cohort_size = check_int("cohort_size", cohort_size, 1, num_clients)
        self.rng = as_rng(rng, "selection")
        self._forget_cohort()

    @property
    def kind(self) -> str:
        """Name of the scheme in states: a state of another kind is refused."""
        return type(self).__name__

    @property
    def batch(self) -> tuple[int, ...]:
        """Shape of the runs in lock-step: () for one run, (S,) for S runs."""
        return batch_shape(self.rng)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape [..., K] of an array with one value per client."""
        return (*self.batch, self.num_clients)

    @property
    def has_own_weights(self) -> bool:
        """Whether the scheme writes `weigh`, whose factors count absence, too."""
        return type(self).weigh is not BaseSelector.weigh

    def choose(self, round: int, size: int, present: Bools | None) -> tuple[Ints, Floats]:
        """Choose the cohort; every scheme implements this.

        Args:
            round: The round, counted from 0.
            size: Number of clients to choose: k, or fewer if fewer are present, down to 0.
            present: Who may be asked, shape [..., K]; None for everyone.

        Returns:
            Client ids in ascending order and their inclusion probabilities, [..., size] each.
        """
        raise NotImplementedError(f"{type(self).__name__} must implement choose")

    def weigh(self, clients: Ints) -> Floats | None:
        """Return the factors of the clients' shares in an unbiased aggregation.

        The default, None, stands for the inverse of the inclusion probabilities.

        Args:
            clients: The clients that were chosen, [..., size].

        Returns:
            One factor per client, [..., size], or None.
        """
        return None

    def learn(self, outcome: Outcome) -> None:
        """Learn from the outcome of the cohort that was asked; the default learns nothing.

        Args:
            outcome: Success and loss of the clients asked, shape [..., k] each.
        """

    def allocation(self, round: int, available: npt.ArrayLike | None = None) -> Allocation:
        """Return every client's inclusion probability without a draw.

        Schemes with `has_inclusion` implement this.

        Args:
            round: The round, counted from 0.
            available: Who may be asked, as for `select`; the others get 0.
        """
        raise NotImplementedError(f"{type(self).__name__} cannot say its probabilities")

    def inclusion(self, round: int, available: npt.ArrayLike | None = None) -> Floats:
        """Return the probabilities [..., K] of `allocation`."""
        return self.allocation(round, available).inclusion

    def select(self, round: int, available: npt.ArrayLike | None = None) -> Cohort:
        """Return the clients to ask in this round.

        If fewer than k clients are available, all of them are asked; if none is, the cohort
        is empty.

        Args:
            round: The round, counted from 0.
            available: Who may be asked: a mask [K] or [..., K], or client ids; None for all.

        Returns:
            The cohort, with clients of shape [..., k].

        Raises:
            ValueError: If the round or `available` is out of bounds, and nothing is drawn then;
                or if `choose` returns clients that cannot be asked.
        """
        check_int("round", round, 0)
        present = present_mask(available, self.num_clients, self.batch)
        size = reachable_size(self.cohort_size, present)

        chosen = self.choose(round, size, present)
        cohort = make_cohort(self, round, chosen, size, present)
        self.asked = cohort
        return cohort

    def update(self, outcome: Outcome) -> None:
        """Learn from the outcome of the cohort that was asked last.

        Args:
            outcome: Who succeeded, and the losses if clients report them.

        Raises:
            ValueError: If the outcome is not for the cohort asked last, or if it lacks the
                losses that the scheme needs.
        """
        asked = self.asked
        check_answers(asked, outcome.cohort)
        check_reports(self, outcome)
        if asked is not None and outcome.cohort is not asked:
            outcome = replace(outcome, cohort=asked)  # its probabilities are the true ones

        self.learn(outcome)
        self._forget_cohort()

    def join(self, count: int = 1) -> None:
        """Add clients at the end; the ids of the others stay, a cohort in flight is forgotten.

        Args:
            count: Number of clients that join.
        """
        count = check_int("count", count, 1)
        extended = {}
        for name in self.client_arrays:
            newcomers = self.newcomers(name, count)
            extended[name] = np.concatenate([getattr(self, name), newcomers], axis=-1)

        self.num_clients += count
        for name, values in extended.items():
            setattr(self, name, values)
        self._forget_cohort()

    def newcomers(self, name: str, count: int) -> Floats:
        """Return what an array holds for clients that join: `newcomer_values`, or the mean.

        Args:
            name: One of `client_arrays`.
            count: Number of clients that join.

        Returns:
            Their values, shape [..., count].
        """
        if name in self.newcomer_values:
            return np.full((*self.batch, count), self.newcomer_values[name])
        mean = getattr(self, name).mean(axis=-1, keepdims=True)
        return np.repeat(mean, count, axis=-1)

    def check_in_flight(
        self, cohort: Cohort, in_flight: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]
    ) -> None:
        """Refuse values of a state that cannot belong to its cohort; the default has none.

        Args:
            cohort: The cohort that waits for its outcome.
            in_flight: The values by the names in `in_flight`.
            arrays: The arrays of the state by the names in `client_arrays`.

        Raises:
            ValueError: If a value does not fit the cohort.
        """

    def state_dict(self) -> State:
        """Return everything that decides the selector's future choices.

        Returns:
            Sizes, copies of the arrays, the generator's state and the cohort in flight.
        """
        state: State = {name: getattr(self, name) for name in CONFIG_KEYS}
        for name in (*self.client_arrays, *self.run_arrays):
            state[name] = np.copy(getattr(self, name))
        state["rng"] = rng_state(self.rng)

        if self.asked is not None:
            asked = dict(vars(self.asked))
            if self.asked.weights is None:
                del asked["weights"]
            for name in self.in_flight:
                asked[name] = _copy(getattr(self, name))
            state["asked"] = asked
        return state

    def load_state_dict(self, state: State) -> None:
        """Continue exactly where the state was taken.

        Args:
            state: What `state_dict` of a selector of the same kind and size returned.

        Raises:
            ValueError: If the state is of another scheme or size; nothing changes then.
        """
        check_config(self, state)
        arrays = read_arrays(self, state)
        asked, in_flight = read_cohort(self, state)
        if asked is not None:
            self.check_in_flight(asked, in_flight, arrays)

        set_rng_state(self.rng, state["rng"])
        for name, values in arrays.items():
            setattr(self, name, values)
        self._forget_cohort()
        for name, value in in_flight.items():
            setattr(self, name, value)
        self.asked = asked

    def _forget_cohort(self) -> None:
        self.asked = None
        for name in self.in_flight:
            setattr(self, name, None)


def _copy(value: Any) -> Any:
    return None if value is None else np.copy(value)
