"""The engine: the models of all runs in lock-step, on one device.

It holds the data on the device and trains one batch of local updates per round.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from fedcohort.arrays import Bools, Floats, Ints
from fedcohort.cores import usable_cores
from fedcohort.learning.aggregator import Aggregator, read_tensor
from fedcohort.learning.evaluation import Evaluation, Evaluator, PendingEvaluation
from fedcohort.learning.inputs import check_inputs
from fedcohort.learning.jobs import Jobs, LocalUpdates, make_jobs
from fedcohort.learning.layers import with_channels_last
from fedcohort.learning.memory import check_training_memory
from fedcohort.learning.mode_memory import describe_training, recall_mode, remember_mode
from fedcohort.learning.one_by_one import SequentialTrainer
from fedcohort.learning.options import PRECISIONS, Options, find_device
from fedcohort.learning.run import Run
from fedcohort.learning.sgd import Sgd
from fedcohort.learning.trainers import BatchedTrainer
from fedcohort.learning.tuning import choose_slots, fastest_mode, preferred_mode
from fedcohort.learning.update_memory import UpdateMemory
from fedcohort.learning.weights import flat_weights
from fedcohort.learning.workers import Workers, multiply_adds
from fedcohort.rounds import Returned


class Engine:
    """Trains, aggregates and evaluates R runs in lock-step.

    The loop `fedcohort.play` says which clients are asked and whose update arrives.

    Args:
        modules: Initial model of each run, R modules with the same parameters. The engine moves
            the first to the device and uses it for the forward pass of all.
        x: Inputs of all samples, [N, ...], float32.
        y: Labels of all samples, [N], int64, from 0.
        runs: The R runs, all with the same number of clients K.
        sgd: Local optimiser of the clients.
        options: How to compute; on the CPU in float32 by default.

    Attributes:
        models: Current weights of every run, [R, P].
        aggregator: Combines updates by each run's rule and takes the server's step.
        mode: How the engine trains, "together" or "one-by-one".
        slots: Most clients that step side by side; None until the first round that trains,
            unless the options give it. Halved whenever the device runs out of memory.
        client_steps: Number of SGD steps so far, over all clients and runs.

    Raises:
        ValueError: If models, samples, runs and options do not fit together.

    Examples:
        >>> import numpy as np, torch
        >>> from fedcohort.learning import Engine, Options, Run, Sgd, make_model
        >>> x, y = torch.randn(30, 5), torch.arange(30) % 3
        >>> owned = [np.arange(0, 10), np.arange(10, 20)]
        >>> run = Run(seed=0, train=owned, test=np.arange(20, 30), epochs=np.array([1, 2]))
        >>> model = make_model("mlp", shape=(5,), classes=3, seed=0)
        >>> engine = Engine([model], x, y, [run], Sgd(), Options(mode="one-by-one"))
        >>> engine.train(0, np.array([[0, 1]]), np.array([[True, False]])).valid
        array([[ True, False]])
        >>> tested = engine.evaluate()
        >>> tested.accuracy.shape, tested.loss.shape, tested.label_accuracy.shape
        ((1,), (1,), (1, 3))
    """

    def __init__(
        self,
        modules: Sequence[nn.Module],
        x: Tensor,
        y: Tensor,
        runs: Sequence[Run],
        sgd: Sgd,
        options: Options | None = None,
    ) -> None:
        self.options = options or Options()
        self.device = find_device(self.options.device)
        precision = self.options.precision
        if self.device.type == "cpu" and precision != "float32":
            raise ValueError(f"precision must be float32 on a CPU, got {precision!r}")
        check_inputs(modules, x, y, runs)
        check_training_memory(modules, runs, sgd, self.options.slots, self.device)

        self.runs = list(runs)
        self.sgd = sgd
        self.module = modules[0].to(self.device)
        self.x = x.to(self.device)
        self.y = y.to(self.device)
        self.models = torch.stack([flat_weights(module).to(self.device) for module in modules])
        self.aggregator = Aggregator(self.runs, self.models, sgd.rate, self.options.memory)

        self._dtype = PRECISIONS[precision]
        threads = 0
        module = self.module
        if self.device.type == "cpu":
            threads = usable_cores()
            module = with_channels_last(module, self.x[:2])
        if self.device.type == "cuda":
            torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
            torch.backends.cudnn.allow_tf32 = precision == "tf32"
            torch.backends.cudnn.benchmark = True  # evaluation repeats the same shapes
        self._compiled = self.options.compiled and self.device.type == "cuda"

        self.workers = Workers(module, threads)
        self._evaluator = Evaluator(self.workers, self.x, self.y, self._dtype, self._compiled)
        self._trainer: BatchedTrainer | SequentialTrainer | None = None
        self.slots = self.options.slots
        self.mode = self.options.mode
        if self.mode == "auto":
            self.mode = self._choose_mode()
        self.client_steps = 0

    def train(
        self,
        round: int,
        clients: Ints,
        arrived: Bools,
        weights: Floats | None = None,
        available: Bools | None = None,
    ) -> Returned:
        """Train the clients whose update arrives and move every run's model.

        An update that is not finite, or longer than `Options.max_norm`, is invalid and dropped.

        Args:
            round: Number of the round; with the run's seed it decides the order of samples.
            clients: Clients that each run asks, [R, k].
            arrived: Whether their update arrives, [R, k]. Other clients are not trained.
            weights: Factor of each client's share that makes the choice of the cohort unbiased,
                [R, k], for rules that use it; by default 1.
            available: Who could be asked, [R, K], for rules that use it; by default everyone.

        Returns:
            Which updates are valid, and the mean training loss of each, nan where invalid.
        """
        valid = np.zeros(arrived.shape, dtype=np.bool_)
        loss = np.full(arrived.shape, np.nan)
        norm = np.full(arrived.shape, np.nan)
        updates = None

        job_run = np.argwhere(arrived)[:, 0]
        job_client = clients[arrived]
        if job_run.size:
            jobs = make_jobs(self.runs, round, job_run, job_client, self.sgd.batch_size)
            updates = self._train_jobs(jobs, cohort_size=clients.shape[1])
            norms = torch.linalg.vector_norm(updates.change, dim=1)
            is_finite = torch.isfinite(norms) & torch.isfinite(updates.loss)
            is_valid = is_finite & (norms <= self.options.max_norm)
            told = torch.stack([is_valid.double(), updates.loss.double(), norms.double()])
            job_valid, loss[arrived], norm[arrived] = told.cpu().numpy()  # wait only once
            valid[arrived] = job_valid > 0
        loss = np.where(valid, loss, np.nan)
        norm = np.where(valid, norm, np.nan)

        arrivals = self.aggregator.describe(clients, valid, weights, loss, norm, available)
        change = None if updates is None else updates.change
        self.models = self.aggregator.move(self.models, change, arrived, arrivals)
        return Returned(valid, loss, norm)

    def losses(self, runs: Sequence[int], clients: Ints) -> Floats:
        """Return the mean loss of current models on the training data of clients.

        Args:
            runs: Positions of n runs.
            clients: For each of these runs, d clients, [n, d].

        Returns:
            Mean loss of each run's model on the training data of each client, [n, d].
        """
        parts = []
        for run, own in zip(runs, clients, strict=True):
            parts.append([self.runs[run].train[client] for client in own])

        def sample_losses(row: int) -> Tensor:
            return self._evaluator.losses(self.models[runs[row]], np.concatenate(parts[row]))

        losses = torch.cat(self.workers.map(sample_losses, range(len(runs))))
        sizes = np.array([len(samples) for own in parts for samples in own])
        starts = np.cumsum(sizes) - sizes
        sums: Floats = np.add.reduceat(losses.double().cpu().numpy(), starts)  # wait only once
        return np.asarray(sums / sizes).reshape(clients.shape)

    def evaluate(self, samples: Ints | None = None) -> Evaluation:
        """Return the accuracy and the mean loss of every run's model.

        Args:
            samples: Samples to test all runs on, as positions in the data; by default each run's
                own test samples.

        Returns:
            Accuracy and mean loss, [R] each, and the accuracy by class of clients and by label.
        """
        return self.start_evaluation(samples).finish()

    def start_evaluation(self, samples: Ints | None = None) -> PendingEvaluation:
        """Start what `evaluate` does; a GPU tests while the host prepares the next round."""
        return self._evaluator.start(self.models, self.runs, samples)

    def untested(self) -> Evaluation:
        """Return an evaluation of the same shapes that knows nothing: all values are nan."""
        return self._evaluator.untested(self.runs)

    def state_dict(self) -> dict[str, Any]:
        """Return everything that training changes, except the memory of updates.

        Returns:
            The models [R, P], the server's averages [R, P], and what the rules have learnt.
        """
        return {"models": self.models, **self.aggregator.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a state that `state_dict` returned.

        Args:
            state: State of an engine with the same model, rules and number of runs.

        Raises:
            ValueError: If a part is missing or has another shape or type; the engine is unchanged.
        """
        models = read_tensor("models", state, self.models)
        self.aggregator.load_state_dict(state)
        self.models = models

    @property
    def memory(self) -> UpdateMemory | None:
        """The last update of every client; None if no rule remembers updates."""
        return self.aggregator.memory

    @property
    def model_bytes(self) -> int:
        """Size in bytes of one model as a server sends it, in float32."""
        return 4 * self.models.shape[1]

    def _train_jobs(self, jobs: Jobs, cohort_size: int) -> LocalUpdates:
        """Train the jobs with the trainer, which the first round builds."""
        self.client_steps += int(jobs.steps.sum())
        self.slots = self.slots or choose_slots(
            self.runs, cohort_size, self.sgd, self.x[:1], self.model_bytes
        )
        while True:
            if self._trainer is None:
                self._trainer = self._make_trainer(self.mode, self.slots)
            try:
                return self._trainer.train(self.models, jobs)
            except torch.OutOfMemoryError:
                if self.slots == 1:
                    raise
            # Fewer slots give the same updates, later. The models are as they were.
            self.slots = -(-min(self.slots, jobs.run.size) // 2)
            self._trainer = None
            if self.device.type == "cuda":
                torch.cuda.empty_cache()

    def _make_trainer(self, mode: str, slots: int) -> BatchedTrainer | SequentialTrainer:
        if mode == "one-by-one":
            return SequentialTrainer(self.workers, self.x, self.y, self.sgd)
        return BatchedTrainer(
            self.workers, self.x, self.y, self.sgd, slots, self._dtype, self._compiled
        )

    def _choose_mode(self) -> str:
        """Return the faster mode for this model and machine, remembered or measured now."""
        if self.device.type != "cpu":
            return "together"
        num_runs = min(len(self.runs), 4)
        clients = np.arange(min(20, len(self.runs[0].train)))
        training = describe_training(
            self.module,
            sample=list(self.x.shape[1:]),
            batch_size=self.sgd.batch_size,
            jobs=[num_runs, clients.size],
            slots=self.slots,
        )
        remembered = recall_mode(training)
        if remembered is not None:
            return remembered
        job_run = np.repeat(np.arange(num_runs), clients.size)
        job_client = np.tile(clients, num_runs)
        jobs = make_jobs(self.runs, 0, job_run, job_client, self.sgd.batch_size)
        short_jobs = Jobs(jobs.run, [rows[:3] for rows in jobs.batches], jobs.mu)

        # No more slots than jobs: idle slots would count against training together.
        slots = min(job_run.size, self.slots or job_run.size)
        trainers = {
            "together": self._make_trainer("together", slots),
            "one-by-one": self._make_trainer("one-by-one", slots),
        }
        step_work = self.sgd.batch_size * multiply_adds(self.workers.module(), self.x[:1])
        preferred = preferred_mode(step_work)
        mode = fastest_mode(trainers, self.models, short_jobs, preferred)
        remember_mode(training, mode)
        return mode
