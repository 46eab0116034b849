"""What may be true of answers that the deadline hid: draws from the posterior.

The model is that of `durations`: the logarithm of client i's time is normal with mean c_i and a
spread s that all clients share, and the client answers at all with probability q_i. The c_i are
normal with mean m and deviation t; the q_i have a Beta distribution with mean a and concentration
b. A failure does not say whether an answer was only late, so many values of these five shared
numbers explain a log nearly as well, and a point estimate would be sure of a tail that nobody saw.
Here c_i and q_i are integrated over grids, and (m, log t, log s, logit a, log b) is drawn by
importance sampling. The grid of q_i follows the prior to 0 and 1, where its density may have no
bound: clients that always answer lie there.
"""

from dataclasses import dataclass

import numpy as np

from fedcohort.advice.durations import Counts, Durations, count_times
from fedcohort.advice.log import FederationLog
from fedcohort.advice.special_functions import jacobi_rule, log_gamma, normal_tail
from fedcohort.arrays import Floats, Ints

MOST_FITTED = 150  # clients that decide the shared numbers
MEANS = np.linspace(-4.0, 6.0, 25)  # values of c_i that are tried, in its own deviations
POINTS = 14  # values of q_i that are tried
RANGE = 6.0  # deviations of q_i to both sides of the likeliest
SAMPLES = 120
STAGES = 5
DEGREES = 5  # of freedom of the t distribution that proposes
# Before the log is seen, the last four shared numbers are normal: clients and their answers seldom
# differ in time by less than a few per cent or by more than a factor of ten. How often they answer
# at all may be anything: one in six federations has a mean above 95 %.
PRIOR_MEANS = np.log([0.3, 0.4, 1.0, 5.0])
PRIOR_DEVIATIONS = np.array([1.0, 0.7, 3.0, 1.0])
FIRST_DEVIATIONS = np.array([0.1, 0.2, 0.1, 0.3, 0.3])
TINY = 1e-12


@dataclass(frozen=True, eq=False)
class ClientGrid:
    """The counts of some clients, and the values of their means that are tried.

    Attributes:
        counts: What the log says of them, [K] and [P]; groups of failures in order of clients.
        means: Values of c_i [K, C].
        step: Distance of neighbours [K].
    """

    counts: Counts
    means: Floats
    step: Floats

    def tables(self, shared: Floats) -> tuple[Floats, Floats]:
        """Return values of q_i and the log-probabilities of all values [K, C, Q].

        Args:
            shared: The five shared numbers [5].
        """
        centre, log_between, log_spread, logit_mean, log_concentration = shared.tolist()
        counts = self.counts
        spread = np.exp(log_spread)
        scores = (np.log(counts.deadline)[:, None] - self.means[counts.client]) / spread
        tail = normal_tail(scores)
        mean = 1 / (1 + np.exp(-logit_mean))
        above = mean * np.exp(log_concentration)
        below = (1 - mean) * np.exp(log_concentration)
        answers, fails, log_weights = self._values_of_answers(tail, above, below)

        squares = counts.squares[:, None] - 2 * self.means * counts.sums[:, None]
        squares += counts.answers[:, None] * self.means**2
        times = -squares / (2 * spread**2) - counts.answers[:, None] * log_spread
        times -= ((self.means - centre) / np.exp(log_between)) ** 2 / 2 + log_between

        normaliser = log_gamma(above + below) - log_gamma(above) - log_gamma(below)
        table = (counts.answers[:, None, None] + above - 1) * np.log(answers)
        table += (counts.never[:, None, None] + below - 1) * np.log(fails)
        missed = answers[counts.client] * tail[:, :, None]
        may_be_late = fails[counts.client] + missed
        failures = counts.unsure[:, None, None] * np.log(may_be_late)
        if counts.late.any():
            failures += counts.late[:, None, None] * np.log(np.maximum(missed, TINY))
        table += self._sum_groups(failures)
        return answers, table + normaliser + times[:, :, None] + log_weights

    def log_density(self, shared: Floats) -> float:
        """Return the logarithm of the posterior of the shared numbers, up to a constant."""
        if (np.abs(shared[1:]) > 8).any():
            return -np.inf
        _, table = self.tables(shared)
        table = table.reshape(len(table), -1)
        largest = table.max(axis=1)
        sums = np.log(np.exp(table - largest[:, None]).sum(axis=1) * self.step) + largest
        scores = (shared[1:] - PRIOR_MEANS) / PRIOR_DEVIATIONS
        return float(sums.sum() - (scores**2).sum() / 2)

    def draw(self, shared: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Return a draw of each client's c_i and q_i, given the shared numbers, [K] each."""
        answers, table = self.tables(shared)
        table = table.reshape(len(table), -1)
        # The largest of log-probabilities plus Gumbel noise is a draw by the probabilities.
        place = (table + rng.gumbel(size=table.shape)).argmax(axis=1)
        rows = np.arange(len(table))
        return self.means[rows, place // POINTS], answers.reshape(len(table), -1)[rows, place]

    def _values_of_answers(
        self, tail: Floats, above: float, below: float
    ) -> tuple[Floats, Floats, Floats]:
        """Return values of q_i, those of 1 - q_i, and the logarithms of their weights [K, C, Q].

        Args:
            tail: Probability that an answer of each group of failures is late [P, C].
            above: First parameter of the Beta distribution of the q_i.
            below: Second parameter.
        """
        low, high = self._range_of_answers(tail, above, below)
        # The prior has no bound at an end where its parameter is below 1.
        rules = []
        for at_zero in (1.0, min(above, 1.0)):
            for at_one in (1.0, min(below, 1.0)):
                rules.append(_rule(at_zero, at_one))
        points, rests, logs = np.stack(rules, axis=1)
        rule = 2 * (low == 0) + (high == 1)
        width = (high - low)[:, :, None]
        answers = low[:, :, None] + width * points[rule]
        fails = (1 - high)[:, :, None] + width * rests[rule]
        return answers, fails, np.log(width) + logs[rule]

    def _range_of_answers(self, tail: Floats, above: float, below: float) -> tuple[Floats, Floats]:
        """Return the least and largest q_i that are tried, [K, C] each."""
        counts = self.counts
        late = self._sum_groups(counts.late[:, None])
        unsure = self._sum_groups(counts.unsure[:, None])
        tails = self._sum_groups(counts.unsure[:, None] * tail)
        answered = counts.answers[:, None] + late + max(above, 1.0)
        never = counts.never[:, None] + max(below, 1.0)

        # The likeliest q solves answered / q = never / (1 - q) + unsure in_time / (1 - in_time q),
        # as if all failures that may have been late had missed one deadline.
        in_time = 1 - tails / np.maximum(unsure, 1.0)
        square = in_time * (answered + never + unsure)
        linear = answered * (1 + in_time) + never + unsure * in_time
        root = np.sqrt(np.maximum(linear**2 - 4 * square * answered, 0.0))
        likeliest = 2 * answered / (linear + root)
        curvature = answered / likeliest**2 + never / (1 - likeliest) ** 2
        curvature += unsure * (in_time / (1 - in_time * likeliest)) ** 2
        reach = RANGE / np.sqrt(curvature)
        return np.maximum(likeliest - reach, 0.0), np.minimum(likeliest + reach, 1.0)

    def _sum_groups(self, values: Floats) -> Floats:
        """Return the sums over each client's groups of failures, from [P, ...] to [K, ...]."""
        total = np.zeros((len(self.means), *values.shape[1:]))
        np.add.at(total, self.counts.client, values)
        return total


def draw_durations(
    log: FederationLog, fitted: Durations, rng: np.random.Generator, draws: int
) -> list[Durations]:
    """Return draws of how long answers take, given the log.

    Args:
        log: The log.
        fitted: A point estimate to begin with.
        rng: Source of randomness.
        draws: Number of draws.
    """
    counts = count_times(log)
    between = max(float(fitted.log_median.std()), 0.05)
    chosen = np.sort(np.argsort(-log.asked_of_client, kind="stable")[:MOST_FITTED])
    part = _grid(_part(counts, chosen), fitted.log_median[chosen], between, fitted.spread)
    mean = float(np.clip(fitted.answers.mean(), 0.02, 0.98))
    first = [float(fitted.log_median.mean()), np.log(between), np.log(fitted.spread)]
    start = np.array([*first, np.log(mean / (1 - mean)), PRIOR_MEANS[-1]])
    everyone = _grid(counts, fitted.log_median, between, fitted.spread)
    found = []
    for shared in _sample(part, start, rng, draws):
        means, answers = everyone.draw(shared, rng)
        found.append(Durations(means, float(np.exp(shared[2])), answers, fitted.by_chance))
    return found


def _rule(at_zero: float, at_one: float) -> tuple[Floats, Floats, Floats]:
    """Return points y between 0 and 1, 1 - y, and the logarithms of their weights.

    The rule is exact for polynomials times y^(at_zero - 1) (1 - y)^(at_one - 1).
    """
    points, weights = jacobi_rule(POINTS, at_zero, at_one)
    points = np.maximum(points, TINY)
    rests = np.maximum(1 - points, TINY)
    logs = np.log(weights) - (at_zero - 1) * np.log(points) - (at_one - 1) * np.log(rests)
    return points, rests, logs


def _grid(counts: Counts, centre: Floats, between: float, spread: float) -> ClientGrid:
    deviation = 1 / np.sqrt(1 / between**2 + counts.answers / spread**2)
    means = centre[:, None] + deviation[:, None] * MEANS
    return ClientGrid(counts, means, deviation)


def _part(counts: Counts, chosen: Ints) -> Counts:
    """Return the counts of some clients, with new positions."""
    position = np.full(len(counts.answers), -1)
    position[chosen] = np.arange(len(chosen))
    kept = position[counts.client] >= 0
    return Counts(
        answers=counts.answers[chosen],
        sums=counts.sums[chosen],
        squares=counts.squares[chosen],
        never=counts.never[chosen],
        client=position[counts.client[kept]],
        deadline=counts.deadline[kept],
        late=counts.late[kept],
        unsure=counts.unsure[kept],
    )


def _sample(grid: ClientGrid, start: Floats, rng: np.random.Generator, draws: int) -> Floats:
    """Return draws of the shared numbers [D, 5].

    Each stage proposes around what the stage before found likely.
    """
    size = len(start)
    mean = start
    covariance = np.diag(FIRST_DEVIATIONS**2)
    for _ in range(STAGES):
        root = np.linalg.cholesky(covariance)
        scale = np.sqrt(rng.chisquare(DEGREES, SAMPLES) / DEGREES)
        scores = rng.standard_normal((SAMPLES, size)) / scale[:, None]
        samples = mean + scores @ root.T
        proposed = -(DEGREES + size) / 2 * np.log1p((scores**2).sum(axis=1) / DEGREES)
        density = np.array([grid.log_density(sample) for sample in samples])
        weights = _weights(density - proposed)
        mean = weights @ samples
        centred = samples - mean
        covariance = (weights[:, None] * centred).T @ centred + 1e-6 * np.eye(size)
    return np.asarray(samples[rng.choice(SAMPLES, size=draws, p=weights)])


def _weights(logs: Floats) -> Floats:
    """Return importance weights that sum to 1, flattened until some samples share them."""
    power = 1.0
    while True:
        weights = np.exp(power * (logs - logs.max()))
        weights /= weights.sum()
        if 1 / (weights**2).sum() >= SAMPLES / 8 or power < 0.01:
            return np.asarray(weights)
        power /= 1.5
