"""The engine: the models of all runs in lock-step, the data on one device, one batch of local updates per round."""

import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from fedcohort.aggregation.registry import AGGREGATIONS
from fedcohort.aggregation.server import server_step
from fedcohort.arrays import Bools, Floats, Ints
from fedcohort.checks import MAX_COUNT, check_array, check_choice, check_int, check_range
from fedcohort.learning.fitting import refuse_unfit
from fedcohort.learning.flat import flat_weights, forward_of
from fedcohort.learning.layers import for_many_models
from fedcohort.learning.local import Jobs, OneByOne, Sgd, Together, Trained, compiled
from fedcohort.learning.schedule import batches
from fedcohort.learning.tuning import faster, slots_for
from fedcohort.learning.workers import Workers
from fedcohort.rng import stream
from fedcohort.rounds import Returned

PRECISIONS = {"float32": torch.float32, "tf32": torch.float32, "bf16": torch.bfloat16}
MODES = ("auto", "together", "one-by-one")
EVALUATION_BATCH = 2500


@dataclass(frozen=True, eq=False)
class Run:
    """One of the runs in lock-step: who owns what, and how its clients and its server learn.

    train, test: samples of each client; epochs [K]; mu: FedProx's coefficient, 0 for FedAvg.
    """

    seed: int
    train: Sequence[Ints]
    test: Ints
    epochs: Ints
    mu: float = 0.0
    aggregation: str = "paper"
    server_rate: float = 1.0
    server_momentum: float = 0.0

    def __post_init__(self) -> None:
        check_choice("aggregation", self.aggregation, AGGREGATIONS)
        check_range("mu", self.mu, 0.0, 1e6)
        empty = [client for client, samples in enumerate(self.train) if not len(samples)]
        if empty or not len(self.train):
            raise ValueError(
                f"train must hold at least one sample per client, got none for client {[*empty, 0][0]}"
            )
        if not len(self.test):
            raise ValueError("test must hold at least one sample, got none")
        epochs = check_array("epochs", self.epochs, (len(self.train),), 1, MAX_COUNT)
        if (epochs != np.floor(epochs)).any():
            raise ValueError(
                f"epochs must be whole numbers, got {epochs[epochs != np.floor(epochs)][0]}"
            )

    @property
    def shares(self) -> Floats:
        """Each client's share of all training samples."""
        sizes: Floats = np.array([len(samples) for samples in self.train], dtype=np.float64)
        return np.asarray(sizes / sizes.sum())


@dataclass(frozen=True)
class Options:
    """How to compute; float32 is the reference.

    mode: "together", "one-by-one", or "auto": on a CPU whichever a short measurement finds faster, on a GPU together.
    max_norm: longest change a client may return; what is longer, or not finite, is rejected as a failure.
    """

    device: str = "cpu"
    precision: str = "float32"
    compiled: bool = False
    mode: str = "auto"
    slots: int | None = None
    max_norm: float = float("inf")

    def __post_init__(self) -> None:
        check_choice("mode", self.mode, MODES)
        check_choice("precision", self.precision, PRECISIONS)
        if self.slots is not None:
            check_int("slots", self.slots, 1, MAX_COUNT)
        if not self.max_norm > 0:
            raise ValueError(f"max_norm must be above 0, got {self.max_norm!r}")


class Engine:
    """Trains, aggregates and evaluates all runs; the loop tells it who is asked and whose answer arrives."""

    def __init__(
        self,
        modules: Sequence[nn.Module],
        x: Tensor,
        y: Tensor,
        runs: Sequence[Run],
        sgd: Sgd,
        options: Options | None = None,
    ) -> None:
        self.options = options = options or Options()
        self.device = device_of(options.device)
        if self.device.type == "cpu" and options.precision != "float32":
            raise ValueError(f"precision must be float32 on a CPU, got {options.precision!r}")
        refuse_unfit(modules, x, y, [(run.train, run.test) for run in runs])
        self.runs, self.sgd, self.module = list(runs), sgd, modules[0].to(self.device)
        self.x, self.y = x.to(self.device), y.to(self.device)
        self.models = torch.stack([flat_weights(module).to(self.device) for module in modules])
        self.velocity = torch.zeros_like(self.models)
        self.shares = torch.tensor(
            np.stack([run.shares for run in runs]), dtype=torch.float32, device=self.device
        )
        self.workers = Workers(
            self.module, (os.cpu_count() or 1) if self.device.type == "cpu" else 0
        )
        self._dtype = PRECISIONS[options.precision]
        if self.device.type == "cuda":
            torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = (
                options.precision == "tf32"
            )
            torch.backends.cudnn.benchmark = True  # evaluation repeats the same shapes
        self._compiled = options.compiled and self.device.type == "cuda"
        self._compiled_forward = (
            compiled(forward_of(for_many_models(self.module.eval()))) if self._compiled else None
        )
        self.slots = options.slots  # unless given, decided in the first round that trains
        self.mode = self._choose_mode() if options.mode == "auto" else options.mode
        self._trainer: Together | OneByOne | None = None
        self._tests: dict[int, tuple[Ints, Tensor, Tensor]] = {}
        self.client_steps = 0

    def train(self, round: int, clients: Ints, arrived: Bools) -> Returned:
        """Train the clients [R, k] whose update arrives, drop what is not valid, and move every run's model."""
        places = np.argwhere(arrived)
        job_run, job_client = places[:, 0], clients[arrived]
        valid, loss = np.zeros(arrived.shape, dtype=np.bool_), np.full(arrived.shape, np.nan)
        change = torch.zeros_like(self.models)
        weight = torch.zeros(len(self.runs), device=self.device)
        if job_run.size:
            jobs = self._jobs(round, job_run, job_client)
            trained = self.trainer(jobs, cohort=clients.shape[1]).train(self.models, jobs)
            good = self._valid(trained)
            change, weight = self._sums(trained.change, good, job_run, job_client)
            valid[arrived], loss[arrived] = good.cpu().numpy(), trained.loss.double().cpu().numpy()
        self._aggregate(change, weight)
        return Returned(valid, np.where(valid, loss, np.nan))

    def losses(self, runs: Sequence[int], clients: Ints) -> Floats:
        """Return the mean loss [n, d] of each run's current model on the training data of these clients [n, d]."""

        def of_run(place: int) -> Floats:
            parts = [self.runs[runs[place]].train[client] for client in clients[place]]
            each, _ = self._outputs(runs[place], *self._gather(np.concatenate(parts)))
            borders = np.cumsum([0, *(len(part) for part in parts)])
            sums: Floats = np.add.reduceat(each.double().cpu().numpy(), borders[:-1])
            return np.asarray(sums / np.diff(borders))

        return np.stack(self.workers.map(of_run, range(len(runs))))

    def evaluate(self, samples: Ints | None = None) -> tuple[Floats, Floats]:
        """Return accuracy and mean loss of every run [R] on the data its clients reserved, or on these samples."""

        def of_run(run: int) -> Tensor:
            each, right = self._outputs(
                run, *self._test_data(self.runs[run].test if samples is None else samples)
            )
            return torch.stack([right.double().mean(), each.double().mean()])

        accuracy, loss = (
            torch.stack(self.workers.map(of_run, range(len(self.runs)))).cpu().numpy().T
        )
        return accuracy, loss

    def state_dict(self) -> dict[str, Tensor]:
        """Return all that training changes."""
        return {"models": self.models, "velocity": self.velocity}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Continue from a state; one of another model or number of runs is refused."""
        for name, mine in self.state_dict().items():
            if name not in state or state[name].shape != mine.shape:
                got = tuple(state[name].shape) if name in state else "nothing"
                raise ValueError(
                    f"{name} of the state must have shape {tuple(mine.shape)}, got {got}"
                )
        self.models, self.velocity = (
            state["models"].to(self.device),
            state["velocity"].to(self.device),
        )

    @property
    def model_bytes(self) -> int:
        """Size of one model as it is sent, in float32."""
        return 4 * self.models.shape[1]

    def trainer(self, jobs: Jobs, cohort: int) -> Together | OneByOne:
        """Return the way of training, built at the first round that trains."""
        self.client_steps += sum(len(rows) for rows in jobs.batches)
        if self._trainer is None:
            self.slots = self.slots or self._suitable_slots(cohort)
            self._trainer = self._make_trainer(self.mode, self.slots)
        return self._trainer

    def _make_trainer(self, mode: str, slots: int) -> Together | OneByOne:
        if mode == "one-by-one":
            return OneByOne(self.workers, self.x, self.y, self.sgd)
        return Together(self.workers, self.x, self.y, self.sgd, slots, self._dtype, self._compiled)

    def _suitable_slots(self, cohort: int) -> int:
        each = [zip(run.train, run.epochs.tolist(), strict=True) for run in self.runs]
        steps = np.array(
            [
                epochs * -(-len(samples) // self.sgd.batch_size)
                for run in each
                for samples, epochs in run
            ]
        )
        # of weights, gradients and activations, what surely suffices
        bytes_per_slot = 10 * self.model_bytes + 400 * self.sgd.batch_size * self.x[:1].numel() * 4
        return slots_for(
            cohort * len(self.runs) / self.workers.count, steps, self.device, bytes_per_slot
        )

    def _choose_mode(self) -> str:
        """Return the faster way for this model on this machine, by a short measurement of the same few jobs."""
        if self.device.type != "cpu":
            return "together"
        enough = min(len(self.runs), 4)
        clients = np.arange(min(8, len(self.runs[0].train)))
        whole = self._jobs(0, np.repeat(np.arange(enough), clients.size), np.tile(clients, enough))
        jobs = Jobs(whole.run, [rows[:3] for rows in whole.batches], whole.mu)
        busy = -(
            -whole.run.size // self.workers.count
        )  # slots without a job would count against stepping together
        slots = min(busy, self.slots or busy)
        return faster(
            {mode: self._make_trainer(mode, slots) for mode in ("together", "one-by-one")},
            self.models,
            jobs,
        )

    def _jobs(self, round: int, run: Ints, client: Ints) -> Jobs:
        orders = []
        for r, c in zip(run.tolist(), client.tolist(), strict=True):
            chance = stream(self.runs[r].seed, "batches", round, c)
            orders.append(
                batches(
                    self.runs[r].train[c], int(self.runs[r].epochs[c]), self.sgd.batch_size, chance
                )
            )
        return Jobs(run, orders, torch.tensor([self.runs[r].mu for r in run.tolist()]))

    def _valid(self, trained: Trained) -> Tensor:
        norms = torch.linalg.vector_norm(trained.change, dim=1)
        sound: Tensor = (
            torch.isfinite(norms) & torch.isfinite(trained.loss) & (norms <= self.options.max_norm)
        )
        return sound

    def _sums(self, change: Tensor, good: Tensor, run: Ints, client: Ints) -> tuple[Tensor, Tensor]:
        """Return sum of share_i (Theta_i - Theta) [R, P] and of the shares [R], in an order that never changes."""
        where = torch.from_numpy(run).to(self.device)
        share = self.shares[where, torch.from_numpy(client).to(self.device)] * good
        matrix = torch.zeros((len(self.runs), run.size), device=self.device)
        matrix[where, torch.arange(run.size, device=self.device)] = share
        return matrix @ torch.where(good[:, None], change, 0.0), matrix.sum(dim=1)

    def _aggregate(self, change: Tensor, weight: Tensor) -> None:
        of_rule = {
            name: rule(change, weight)
            for name, rule in AGGREGATIONS.items()
            if any(r.aggregation == name for r in self.runs)
        }
        chosen = torch.stack(
            [of_rule[run.aggregation][place] for place, run in enumerate(self.runs)]
        )
        rate = torch.tensor([run.server_rate for run in self.runs], device=self.device)
        momentum = torch.tensor([run.server_momentum for run in self.runs], device=self.device)
        some, remembers = (weight > 0)[:, None], (momentum > 0)[:, None]
        models, velocity = server_step(self.models, chosen, self.velocity, rate, momentum)
        self.models = torch.where(some, models, self.models)
        self.velocity = torch.where(
            some & remembers, velocity, self.velocity
        )  # zeros without momentum: small checkpoints

    def _gather(self, samples: Ints) -> tuple[Tensor, Tensor]:
        """Return inputs and labels of these samples, ready for the forward pass."""
        at = torch.from_numpy(samples).to(self.device)
        x = self.x[at].to(self._dtype)
        return x if self._compiled else _fast_layout(x), self.y[at]

    def _test_data(self, samples: Ints) -> tuple[Tensor, Tensor]:
        """Return the same for test samples, gathered once: runs that share a partition share them."""
        if id(samples) not in self._tests:
            self._tests[id(samples)] = (
                samples,
                *self._gather(samples),
            )  # kept, so that no other array gets its id
        return self._tests[id(samples)][1:]

    @torch.no_grad()
    def _outputs(self, run: int, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Return the loss of each sample and whether it was classified right."""
        weights, forward = (
            self.models[run].to(self._dtype),
            forward_of(self.workers.module().eval()),
        )
        of_whole_batches = self._compiled_forward or forward  # compiled for one shape
        losses, rights = [], []
        for part, labels in zip(
            torch.split(x, EVALUATION_BATCH), torch.split(y, EVALUATION_BATCH), strict=True
        ):
            logits = (of_whole_batches if len(part) == EVALUATION_BATCH else forward)(
                weights, part
            ).float()
            losses.append(cross_entropy(logits, labels, reduction="none"))
            rights.append(logits.argmax(dim=1) == labels)
        return torch.cat(losses), torch.cat(rights)


def _fast_layout(x: Tensor) -> Tensor:
    """Return images with channels last in memory on a GPU, where convolutions are faster so."""
    return x.contiguous(memory_format=torch.channels_last) if x.is_cuda and x.ndim == 4 else x


def device_of(name: str) -> torch.device:
    """Return a device that works here; auto: a GPU if there is one."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
        torch.zeros(1, device=device).item()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise ValueError(
            f"device must be one that PyTorch can use here, got {name!r}: {str(error).splitlines()[0]}"
        ) from None
    return device
