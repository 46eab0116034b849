"""The round on Flower: a selector asks, the deadline ends it, valid models are aggregated, the selector is told."""

import logging
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.serverapp import Grid
from flwr.serverapp.exception import AggregationError, InconsistentMessageReplies
from flwr.serverapp.strategy import Result, Strategy

from fedcohort.aggregation.registry import AGGREGATIONS
from fedcohort.checks import check_choice, check_int, check_positive
from fedcohort.files import check_folder
from fedcohort.flower import checkpoint, choosing, wrapped
from fedcohort.flower.aggregation import apply_rule, as_record, shares_of
from fedcohort.flower.gathering import gather
from fedcohort.flower.grid import DeadlineGrid, Shown
from fedcohort.flower.journal import Journal, Totals, announce, row_of
from fedcohort.flower.judging import Rules, Verdict, judge, sound_evaluations
from fedcohort.flower.registry import Registry
from fedcohort.flower.validity import Limits, Model, all_finite, as_model
from fedcohort.lab import folder as rundir
from fedcohort.selection.protocol import Cohort, Outcome, Selector

log = logging.getLogger("flwr.fedcohort")
Evaluate = Callable[[int, ArrayRecord], MetricRecord | None]


@dataclass
class Asked:
    """A round under way: the cohort, its messages in the same order, and the model they carry."""

    cohort: Cohort
    messages: list[Message]
    model: Model
    probabilities: dict[str, float] | None
    since: float


class CohortStrategy(Strategy):
    """Wraps any Flower strategy: a selector decides who trains, rounds end at the deadline, only valid models count.

    strategy: its messages, aggregation and evaluation are used; who is sampled for training is the selector's business.
    selector: a name (`fedcohort list`) or one of your own; cohort_size is then the selector's.
    deadline: seconds; None waits for everybody, at most the timeout of `start`, as the simulation engine needs, where the clock
    means nothing.
    aggregation: "wrapped", the strategy's own, or a name of `fedcohort.aggregation.registry.AGGREGATIONS`.
    num_clients: how many clients there will be; places are kept for those that come late. None: those there at the start, or
    as many as a selector of your own has.
    wait: seconds to wait for clients before the first round. loss_key: metric that holds the loss, for selectors that use it.
    folder: where state and journal go, from which `resume` continues; None keeps nothing.
    """

    def __init__(
        self,
        strategy: Strategy,
        selector: str | Selector = "e3cs-0.5",
        cohort_size: int | None = None,
        *,
        deadline: float | None = None,
        seed: int = 0,
        num_clients: int | None = None,
        aggregation: str = "wrapped",
        limits: Limits | None = None,
        loss_key: str | None = None,
        close_early: bool = True,
        wait: float = 60.0,
        folder: str | Path | None = None,
        resume: bool = False,
        tensorboard: bool = False,
    ) -> None:
        choosing.refuse_no_selector(selector, folder is not None)
        self.choice, self.cohort_size = selector, choosing.cohort_size_of(selector, cohort_size)
        choosing.refuse_unfit(selector, self.cohort_size, loss_key)
        wrapped.refuse_unfit(
            strategy,
            check_choice("aggregation", aggregation, ["wrapped", *AGGREGATIONS]),
            self.cohort_size,
        )
        self.strategy, self.aggregation = strategy, aggregation
        self.minimums, self.numbers = wrapped.minimums(strategy), wrapped.numbers(strategy)
        self.deadline = None if deadline is None else check_positive("deadline", deadline)
        self.seed = check_int("seed", seed, 0)
        num_clients = choosing.num_clients_of(selector, num_clients)
        self.num_clients = (
            None if num_clients is None else check_int("num_clients", num_clients, self.cohort_size)
        )
        self.rules = Rules(
            limits or Limits(),
            str(wrapped.setting(strategy, "weighted_by_key", "num-examples")),
            loss_key,
        )
        self.close_early, self.wait = close_early, check_positive("wait", wait)
        self.folder, self.resume, self.tensorboard = (
            None if folder is None else Path(folder),
            resume,
            tensorboard,
        )
        if self.folder is None and (resume or tensorboard):
            raise ValueError("folder must be given for resume and tensorboard, got None")
        if self.folder is not None:
            check_folder("folder", self.folder)
        self.registry, self.totals, self.journal = (
            Registry(self.num_clients or 0),
            Totals(),
            Journal(None),
        )
        self.result = Result()
        self._selector: Selector | None = None
        self._asked: Asked | None = None
        self._tested: list[
            tuple[Message, str]
        ] = []  # what is sent for evaluation, and to which client

    def start(
        self,
        grid: Grid,
        initial_arrays: ArrayRecord,
        num_rounds: int = 3,
        timeout: float = 3600,
        train_config: ConfigRecord | None = None,
        evaluate_config: ConfigRecord | None = None,
        evaluate_fn: Evaluate | None = None,
    ) -> Result:
        """Play the rounds that are left; with `resume`, from the one after the last that was finished."""
        train_config, evaluate_config = (
            train_config or ConfigRecord(),
            evaluate_config or ConfigRecord(),
        )
        look = partial(self.registry.look, grid, at_once=False)
        on_time = DeadlineGrid(grid, self.deadline, close_early=self.close_early, meanwhile=look)
        check_positive("timeout", timeout)
        with rundir.locked(self.folder, "folder") if self.folder else nullcontext():
            arrays, done = self._begin(grid, initial_arrays, check_int("num_rounds", num_rounds, 1))
            announce(self.folder, self._about(max(num_rounds, done)))
            result = self.result
            self.summary()
            self._evaluate_here(evaluate_fn, done, arrays, result)
            for server_round in range(done + 1, num_rounds + 1):
                messages = self.configure_train(server_round, arrays, train_config, on_time)
                replies = on_time.send_and_receive(messages, timeout=timeout)
                self.registry.look(
                    grid
                )  # or a sign of life from before a death would count as one since
                moved, metrics = self.aggregate_train(server_round, replies)
                arrays = arrays if moved is None else moved
                if metrics is not None:
                    log.info("round %d, as clients report of training: %s", server_round, metrics)
                    result.train_metrics_clientapp[server_round] = metrics
                self._save(server_round, arrays)
                messages = self.configure_evaluate(server_round, arrays, evaluate_config, on_time)
                tested = self.aggregate_evaluate(
                    server_round, on_time.send_and_receive(messages, timeout=timeout)
                )
                if tested is not None:
                    log.info("round %d, evaluated by clients: %s", server_round, tested)
                    result.evaluate_metrics_clientapp[server_round] = tested
                self._evaluate_here(evaluate_fn, server_round, arrays, result)
            if done < num_rounds:
                self._save(num_rounds, arrays)  # with the last evaluations
            self.registry.close(grid)
            self.journal.close()
            for layer, name, least in self.minimums:
                setattr(layer, name, least)
            result.arrays = arrays
            return result

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Let the selector choose among the clients that are there, and the strategy write to exactly those."""
        since = monotonic()
        available = self._available(grid)
        probabilities = self._probabilities(server_round, available)
        cohort = self.selector.select(server_round - 1, available)
        nodes = [self.registry.node(index) for index in cohort.clients.tolist()]
        written = (
            list(
                self.strategy.configure_train(server_round, arrays, config, self._show(grid, nodes))
            )
            if nodes
            else []
        )
        to = {message.metadata.dst_node_id: message for message in written}
        if len(written) != len(nodes) or set(to) != set(nodes):
            raise ValueError(
                f"strategy must write to each of the {len(nodes)} nodes it is shown, got {len(written)} messages"
            )
        messages = [to[node] for node in nodes]
        for message in messages:
            message.metadata.group_id = str(server_round)
        self._asked = Asked(cohort, messages, as_model(arrays), probabilities, since)
        return messages

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Keep the valid models, move the model by them, and tell the selector who returned one."""
        asked, self._asked = self._asked, None
        if asked is None:
            raise ValueError("configure_train must be called before aggregate_train")
        answers = {reply.metadata.reply_to_message_id: reply for reply in replies}
        verdicts = judge(asked.messages, answers, asked.model, self.rules)
        for index, message, verdict in zip(
            asked.cohort.clients.tolist(), asked.messages, verdicts, strict=True
        ):
            self.registry.note(index, message.metadata.dst_node_id, verdict.fate, verdict.examples)
        arrays, metrics = self._aggregate(
            server_round, asked.model, [verdict for verdict in verdicts if verdict.reply]
        )
        success = np.array([verdict.reply is not None for verdict in verdicts], dtype=np.bool_)
        loss = np.array([verdict.loss for verdict in verdicts]) if self.rules.loss_key else None
        self.selector.update(Outcome(asked.cohort, success, loss))
        self._write_down(server_round, asked, verdicts)
        return arrays, metrics

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Let the strategy choose whom to ask among the clients that are there; if none is, nobody."""
        nodes = {
            self.registry.node(index): self.registry.name(index)
            for index in self.registry.available
        }
        shown = self._show(grid, list(nodes))
        messages = (
            list(self.strategy.configure_evaluate(server_round, arrays, config, shown))
            if nodes
            else []
        )
        self._tested = [(message, nodes[message.metadata.dst_node_id]) for message in messages]
        return messages

    def aggregate_evaluate(
        self, server_round: int, replies: Iterable[Message]
    ) -> MetricRecord | None:
        """Let the strategy average the answers that are sound; the others are named in the log."""
        sound, complaints = sound_evaluations(list(replies), self.rules, self._tested)
        for complaint in complaints:
            log.warning("round %d: an evaluation does not count: %s", server_round, complaint)
        return self.strategy.aggregate_evaluate(server_round, sound) if sound else None

    def summary(self) -> None:
        """Log what decides the rounds, then the wrapped strategy's own summary."""
        until = "when all have answered" if self.deadline is None else f"after {self.deadline:g} s"
        name = choosing.name_of(self.choice)
        log.info(
            "%s asks %d of %d clients; rounds end %s",
            name,
            self.cohort_size,
            len(self.registry),
            until,
        )
        self.strategy.summary()

    @property
    def selector(self) -> Selector:
        """The selector; it is made when the clients are known."""
        if self._selector is None:
            raise ValueError("start must be called before a round is configured")
        return self._selector

    def _begin(self, grid: Grid, initial: ArrayRecord, num_rounds: int) -> tuple[ArrayRecord, int]:
        """Find the clients and the state to go on from; return the model and the rounds already done."""
        state = (
            checkpoint.load(self.folder, self.resume, as_model(initial)) if self.folder else None
        )
        if not state:
            announce(
                self.folder, self._about(num_rounds)
            )  # for those who watch while clients gather
        if state:
            checkpoint.refuse_other(self.folder, state, self._decides)
            self.registry.load_state_dict(state["registry"])
        wanted = max(self.num_clients or self.cohort_size, len(self.registry.known))
        gather(
            self.registry, grid, 1 if state else self.cohort_size, wanted, self.wait, self.deadline
        )
        size = int(state["selector"].get("num_clients", 0)) if state else len(self.registry)
        self._selector = choosing.make(self.choice, size, self.cohort_size, self.seed, num_rounds)
        self.totals, self.result, done = Totals(), Result(), 0
        if state:
            self._selector.load_state_dict(state["selector"])
            wrapped.restore(self.strategy, state["strategy"])
            self.totals, done = Totals(**state["totals"]), int(state["round"])
            self.result = checkpoint.result_of(state)
            log.info("resumed after round %d from %s", done, self.folder)
        self.journal = Journal(self.folder, done, self.tensorboard)
        return (as_record(state["model"]) if state else initial), done

    @property
    def _decides(self) -> dict[str, str]:
        """What must stay as it was for a run to go on; the strategy may change."""
        return {"selector": choosing.name_of(self.choice), "aggregation": self.aggregation}

    def _about(self, num_rounds: int) -> dict[str, Any]:
        return {
            "rounds": num_rounds,
            "selector": choosing.name_of(self.choice),
            "cohort_size": self.cohort_size,
            "clients": len(self.registry),
            "deadline": self.deadline,
            "seed": self.seed,
        }

    def _available(self, grid: Grid) -> Any:
        """Return who is there, None for everyone; if nobody is, wait for someone as long as a round may take."""
        self.registry.look(grid)
        self.registry.wait_for_anybody(grid, self.deadline or self.wait)
        if (newcomers := len(self.registry) - self.selector.num_clients) > 0:
            self.selector.join(newcomers)
        there = self.registry.available
        if len(there) < self.cohort_size:
            log.warning(
                "%d clients are there, fewer than the %d to ask", len(there), self.cohort_size
            )
        return None if len(there) == self.selector.num_clients else np.array(there, dtype=np.int64)

    def _probabilities(self, server_round: int, available: Any) -> dict[str, float] | None:
        values = choosing.probabilities(self.selector, server_round - 1, available)
        if values is None:
            return None
        return {
            client.name: round(p, 6)
            for client, p in zip(self.registry.clients, values, strict=True)
            if client
        }

    def _show(self, grid: Grid, nodes: list[int]) -> Grid:
        """Show the strategy only these nodes; stock ones would wait for ever for their minimum if it were more."""
        for layer, name, least in self.minimums:
            setattr(layer, name, min(least, len(nodes)))
        return Shown(grid, nodes)

    def _aggregate(
        self, server_round: int, model: Model, returned: list[Verdict]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Return the new model and averaged metrics; nothing if no model arrived or what they came to is no model."""
        replies = [verdict.reply for verdict in returned if verdict.reply]
        if not replies:
            return None, None
        before = wrapped.attributes(self.strategy)
        try:
            if self.aggregation == "wrapped":
                new, metrics = wrapped.aggregate(self.strategy, server_round, replies, model)
            else:
                everyone = self.registry.examples[
                    : self.selector.num_clients
                ]  # who came during the round is of the next
                shares = shares_of([verdict.examples for verdict in returned], everyone)
                rule = AGGREGATIONS[self.aggregation]
                trained = [verdict.model for verdict in returned if verdict.model]
                new = apply_rule(rule, model, trained, shares)
                metrics = wrapped.average_metrics(self.strategy, replies, self.rules.examples_key)
            if not all(all_finite(part) for part in new.values()):
                raise AggregationError("the aggregated model is not finite")
        except (AggregationError, InconsistentMessageReplies) as error:
            log.error(
                "round %d: the strategy could not aggregate; the model stays as it was: %s",
                server_round,
                error,
            )
            wrapped.undo(self.strategy, before)
            return None, None
        return (as_record(new) if new else None), metrics

    def _write_down(self, server_round: int, asked: Asked, verdicts: list[Verdict]) -> None:
        names = [self.registry.name(index) for index in asked.cohort.clients.tolist()]
        fates = [verdict.fate for verdict in verdicts]
        self.totals.add(names, fates)
        came = ", ".join(f"{name} {fate.status}" for name, fate in zip(names, fates, strict=True))
        log.info("round %d: %s", server_round, came or "nobody")
        if (
            self.deadline is not None
            and fates
            and all(fate.status in ("stopped", "lost") for fate in fates)
        ):
            log.warning(
                "round %d: nobody returned within the deadline of %g s", server_round, self.deadline
            )
        told = list(zip(names, asked.cohort.inclusion.tolist(), fates, strict=True))
        everyone = [client.name for client in self.registry.known]
        self.journal.write(
            row_of(
                server_round,
                monotonic() - asked.since,
                told,
                everyone,
                self.totals,
                asked.probabilities,
            )
        )

    def _save(self, server_round: int, arrays: ArrayRecord) -> None:
        if self.folder:
            state = {
                "round": server_round,
                "model": as_model(arrays),
                "selector": self.selector.state_dict(),
                "registry": self.registry.state_dict(),
                "strategy": wrapped.state_of(self.strategy, self.numbers),
                "totals": asdict(self.totals),
                "metrics": checkpoint.metrics_of(self.result),
                "about": self._decides,
            }
            checkpoint.save(self.folder, state)

    def _evaluate_here(
        self, evaluate: Evaluate | None, server_round: int, arrays: ArrayRecord, result: Result
    ) -> None:
        metrics = evaluate(server_round, arrays) if evaluate else None
        if metrics is not None:
            log.info("round %d, evaluated by the server: %s", server_round, metrics)
            result.evaluate_metrics_serverapp[server_round] = metrics
