"""How the updates of a round move the models of all runs, each by its own rule."""

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fedcohort.aggregation.base import Arrivals, Rule, Setting
from fedcohort.aggregation.combination import combine
from fedcohort.aggregation.registry import find_rule, make_rule
from fedcohort.aggregation.server import adaptive_step, server_step
from fedcohort.arrays import Bools, Floats, Ints, pick
from fedcohort.checks import shown
from fedcohort.learning.run import Run
from fedcohort.learning.update_memory import UpdateMemory


class Aggregator:
    """Combines the updates of R runs in one matrix product and takes the server's steps.

    Args:
        runs: The runs.
        models: Their models [R, P], which say size and device.
        learning_rate: Learning rate of the clients' SGD, for rules that use it.
        memory_precision: Precision of remembered updates, "float32" or "bf16".

    Attributes:
        shares: Share of each client in all training samples [R, K].
        velocity: Server momentum of every run, or the average change of adaptive steps [R, P].
        second: Average square of adaptive steps [R, P]; None if no run takes them.
        memory: The last update of every client; None if no rule remembers updates.

    Raises:
        ValueError: If a rule lacks something it needs, or the memory does not fit.
    """

    def __init__(
        self,
        runs: Sequence[Run],
        models: Tensor,
        learning_rate: float,
        memory_precision: str = "float32",
    ) -> None:
        self.device = models.device
        self.shares: Floats = np.stack([run.shares for run in runs])
        self._device_shares = self._column(self.shares)
        self._rules = _make_rules(runs, learning_rate)
        normalises = [find_rule(run.aggregation).normalises for run in runs]
        self._normalises = torch.tensor(normalises, device=self.device)

        self.memory: UpdateMemory | None = None
        remembering = []
        for position, run in enumerate(runs):
            if find_rule(run.aggregation).remembers_updates:
                remembering.append(position)
        if remembering:
            num_clients = self.shares.shape[1]
            num_weights = models.shape[1]
            self.memory = UpdateMemory(
                remembering, len(runs), num_clients, num_weights, memory_precision, self.device
            )

        self._rate = self._column([run.server_rate for run in runs])
        self._momentum = self._column([run.server_momentum for run in runs])
        self.velocity = torch.zeros_like(models)
        self._adaptive: dict[str, Tensor] = {}  # which runs [R, 1] take which adaptive steps
        for optimizer in sorted({run.server_optimizer for run in runs} - {"sgd"}):
            is_own = [[run.server_optimizer == optimizer] for run in runs]
            self._adaptive[optimizer] = torch.tensor(is_own, device=self.device)
        self.second = torch.zeros_like(models) if self._adaptive else None

    def describe(
        self,
        clients: Ints,
        valid: Bools,
        weights: Floats | None,
        loss: Floats,
        norm: Floats,
        available: Bools | None = None,
    ) -> Arrivals:
        """Return what is known of a round, with the shares of the clients; all [R, k].

        Weights of None are 1. Who was available is [R, K], or None for everyone.
        """
        if weights is None:
            weights = np.ones(clients.shape)
        shares = pick(self.shares, np.maximum(clients, 0))
        if available is not None:
            available = np.broadcast_to(available, self.shares.shape)
        return Arrivals(clients, valid, shares, weights, loss, norm, available)

    def move(
        self, models: Tensor, change: Tensor | None, arrived: Bools, arrivals: Arrivals
    ) -> Tensor:
        """Return the models after a round; a run without a valid update keeps its model.

        Args:
            models: The models [R, P].
            change: Updates of the J clients that arrived [J, P], in the order of `arrived`; None
                if nobody arrived.
            arrived: Whose update is in `change` [R, k].
            arrivals: What else is known of the round.

        Raises:
            ValueError: If a rule returns no finite weight for an update that counts.
        """
        weights = np.zeros(arrived.shape)
        for name, rule, rows in self._rules:
            part = _select(arrivals, rows)
            weights[rows] = _check_weights(name, rule.weigh(part), part.valid)
        if change is not None:
            combined = self._combine(change, arrived, arrivals, weights)
            models = self._step(models, combined, np.any(arrivals.valid, axis=1))
        for _, rule, rows in self._rules:
            rule.learn(_select(arrivals, rows))
        return models

    def _combine(
        self, change: Tensor, arrived: Bools, arrivals: Arrivals, weights: Floats
    ) -> Tensor:
        """Return the change of every run's model [R, P], and remember the updates."""
        job_run, _ = np.nonzero(arrived)
        run = torch.from_numpy(job_run).to(self.device)
        client = torch.from_numpy(arrivals.clients[arrived]).to(self.device)
        is_valid = torch.from_numpy(arrivals.valid[arrived]).to(self.device)
        job_weights = torch.zeros((len(arrived), job_run.size), device=self.device)
        job = torch.arange(job_run.size, device=self.device)
        job_weights[run, job] = self._column(weights[arrived]) * is_valid

        updates = change
        if not arrivals.valid[arrived].all():  # else a copy of all updates for nothing
            updates = torch.where(is_valid[:, None], change, 0.0)
        if self.memory is None:
            change_of_run: Tensor = combine(job_weights, updates, self._normalises)
            return change_of_run
        remembered = self.memory.average(self._device_shares)
        news = self.memory.news(updates, run, client)
        combined: Tensor = combine(job_weights, news, self._normalises) + remembered
        self.memory.store(updates, is_valid, run, client)
        return combined

    def _step(self, models: Tensor, change: Tensor, has_update: Bools) -> Tensor:
        """Return the models after the server's step, for the runs that have an update."""
        updated = torch.from_numpy(has_update).to(self.device)[:, None]
        moved, momentum = server_step(models, change, self.velocity, self._rate, self._momentum)
        # Without momentum the velocity stays zero, which keeps checkpoints small.
        velocity = torch.where((self._momentum > 0)[:, None], momentum, self.velocity)
        if self.second is not None:
            second = self.second
            for optimizer, is_own in self._adaptive.items():
                steps = adaptive_step(
                    models, change, self.velocity, self.second, self._rate, optimizer
                )
                moved = torch.where(is_own, steps[0], moved)
                velocity = torch.where(is_own, steps[1], velocity)
                second = torch.where(is_own & updated, steps[2], second)
            self.second = second
        self.velocity = torch.where(updated, velocity, self.velocity)
        return torch.where(updated, moved, models)

    def state_dict(self) -> dict[str, Any]:
        """Return the server's averages [R, P], and what the rules have learnt by their names."""
        state: dict[str, Any] = {"velocity": self.velocity}
        if self.second is not None:
            state["second"] = self.second
        rules = {}
        for name, rule, _ in self._rules:
            if rule.client_arrays:
                rules[name] = rule.state_dict()
        if rules:
            state["rules"] = rules
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a state that `state_dict` returned.

        Raises:
            ValueError: If a part is missing or has another shape or type; nothing changes then.
        """
        velocity = read_tensor("velocity", state, self.velocity)
        second = None
        if self.second is not None:
            second = read_tensor("second", state, self.second)
        learnt = state.get("rules", {})
        if not isinstance(learnt, dict):
            raise ValueError(f"rules must be a dict by name, got {type(learnt).__name__}")
        rules = []
        for name, rule, rows in self._rules:
            if rule.client_arrays:
                rule = copy(rule)  # the old one stays if a later state does not fit
                rule.load_state_dict(learnt.get(name, {}))
            rules.append((name, rule, rows))
        self._rules = rules
        self.velocity = velocity
        self.second = second

    def _column(self, values: Any) -> Tensor:
        """Return numbers as float32 on the device; whole numbers become floats too."""
        numbers = np.asarray(values, dtype=np.float64)
        return torch.tensor(numbers, dtype=torch.float32, device=self.device)


def read_tensor(name: str, state: dict[str, Any], like: Tensor) -> Tensor:
    """Return a tensor of a state, on the device of another one of its shape.

    Raises:
        ValueError: If it is missing, or has another shape or type.
    """
    found = state.get(name)
    if not isinstance(found, Tensor) or found.shape != like.shape:
        got = tuple(found.shape) if isinstance(found, Tensor) else "nothing"
        raise ValueError(f"{name} of the state must have shape {tuple(like.shape)}, got {got}")
    if found.dtype != like.dtype:
        raise ValueError(f"{name} of the state must be {like.dtype}, got {found.dtype}")
    return found.to(like.device)


def _make_rules(runs: Sequence[Run], learning_rate: float) -> list[tuple[str, Rule, Ints]]:
    """Return one rule for all runs that use it, with its name and their positions."""
    positions: dict[str, list[int]] = {}
    for position, run in enumerate(runs):
        positions.setdefault(run.aggregation, []).append(position)

    rules = []
    for name, rows in positions.items():
        rates = None
        if all(runs[row].success_rates is not None for row in rows):
            rates = np.stack([np.asarray(runs[row].success_rates) for row in rows])
        num_clients = len(runs[rows[0]].train)
        setting = Setting(len(rows), num_clients, rates, learning_rate)
        rules.append((name, make_rule(name, setting), np.array(rows)))
    return rules


def _select(arrivals: Arrivals, rows: Ints) -> Arrivals:
    """Return the part of some runs."""
    part: dict[str, Any] = {}
    for name, values in vars(arrivals).items():
        part[name] = None if values is None else values[rows]
    return Arrivals(**part)


def _check_weights(name: str, weights: Any, valid: Bools) -> Floats:
    """Return the weights [R, k] of a rule, 0 for updates that do not count.

    They are on the host, so the check does not wait for the device.
    """
    about = f"weights of the aggregation {name!r}"
    try:
        values = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"{about} must be numbers of shape {valid.shape}, got {shown(weights)}"
        ) from None
    if values.shape != valid.shape:
        raise ValueError(f"{about} must have shape {valid.shape}, got {values.shape}")
    counted = np.where(valid, values, 0.0)
    if not np.isfinite(counted).all():
        bad = counted[~np.isfinite(counted)][0]
        raise ValueError(f"{about} must be finite for updates that count, got {bad}")
    return counted
