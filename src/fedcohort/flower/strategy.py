"""CohortStrategy: deadline rounds on Flower in which a selector decides who trains."""

import logging
from collections.abc import Iterable
from pathlib import Path

from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Result, Strategy

from fedcohort.checks import check_int, check_positive
from fedcohort.files import check_folder
from fedcohort.flower import selection
from fedcohort.flower.aggregator import Aggregator
from fedcohort.flower.clients import ClientRegistry
from fedcohort.flower.evaluation import Evaluation
from fedcohort.flower.history import ReplyHistory
from fedcohort.flower.inner_strategy import InnerStrategy, check_strategy
from fedcohort.flower.limits import Limits, ReplyRules
from fedcohort.flower.options import RunOptions
from fedcohort.flower.run import Evaluate, Run
from fedcohort.flower.server_rule import check_aggregation
from fedcohort.flower.training import Training
from fedcohort.selection.protocol import Selector

log = logging.getLogger("flwr.fedcohort")


class CohortStrategy(Strategy):
    """Wraps a Flower strategy: a selector decides who trains, and rounds end at the deadline.

    The strategy writes the messages, aggregates and evaluates as it always does. Only replies that
    pass all checks of `fedcohort.flower.replies` reach it.

    Args:
        strategy: A strategy of `flwr.serverapp.strategy` that averages arrays.
        selector: A name that `fedcohort list` prints, or a selector object.
        cohort_size: Number of clients to ask in each round. A selector object brings its own.
        deadline: Seconds after which a round ends. None waits for all clients, at most for the
            `timeout` of `start`; the simulation engine needs this, as its clock means nothing.
        seed: Seed of the selector.
        num_clients: Number of clients that will come; indices are kept for those that come late.
            None takes the number of a selector object, or else the clients there at the start.
        aggregation: "wrapped" for the aggregation of the strategy, or a name of
            `fedcohort.aggregation.registry.AGGREGATIONS` whose rule needs neither true success
            rates nor the clients' learning rate. Rules that remember updates need `folder`.
        limits: Bounds that a reply must keep.
        loss_key: Metric in which clients report their loss, for selectors that use losses.
        close_early: Whether a round ends as soon as all clients have answered.
        wait: Seconds to wait for clients before the first round.
        partial_start: Whether the run may begin if fewer than `num_clients` have come after `wait`.
            If not, that is an error, because the same seed would give other cohorts.
        enough: Number of clients that must be there for a round. With fewer, the run pauses.
        pause: Seconds that the run pauses for them at most. Then it ends with an error, and
            `resume` goes on after the last round.
        folder: Folder for checkpoint and journal; None keeps nothing.
        resume: Whether to continue the run in the folder.
        from_previous: Whether to resume from the checkpoint before the last one, if the last one
            is damaged or missing. The damaged one is set aside.
        tensorboard: Whether to write scalars for TensorBoard into the folder.

    Raises:
        ValueError: If an argument is out of its bounds, or the strategy or the selector cannot be
            used in this way.

    Examples:
        >>> from flwr.serverapp.strategy import FedAvg
        >>> from fedcohort.flower import CohortStrategy
        >>> strategy = CohortStrategy(FedAvg(), "e3cs-0.5", cohort_size=10, deadline=60.0)
        >>> strategy.options.deadline
        60.0
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
        partial_start: bool = False,
        enough: int = 1,
        pause: float = 600.0,
        folder: str | Path | None = None,
        resume: bool = False,
        from_previous: bool = False,
        tensorboard: bool = False,
    ) -> None:
        selection.check_selector(selector, keeps_state=folder is not None)
        cohort_size = selection.resolve_cohort_size(selector, cohort_size)
        if deadline is not None:
            deadline = check_positive("deadline", deadline)
        selection.check_requirements(selector, cohort_size, loss_key, deadline)
        is_number_announced = num_clients is not None
        num_clients = selection.resolve_num_clients(selector, num_clients, cohort_size)
        check_aggregation(aggregation, folder)
        check_strategy(strategy, aggregation, cohort_size)
        if folder is not None:
            check_folder("folder", Path(folder))
        elif resume or tensorboard:
            raise ValueError("folder must be given for resume and tensorboard, got None")
        if from_previous and not resume:
            raise ValueError("resume must be true where from_previous is, got False")

        self.strategy = strategy
        self.options = RunOptions(
            selector=selector,
            cohort_size=cohort_size,
            num_clients=num_clients,
            seed=check_int("seed", seed, 0),
            deadline=deadline,
            aggregation=aggregation,
            close_early=close_early,
            wait=check_positive("wait", wait),
            partial_start=partial_start or not is_number_announced,
            enough=check_int("enough", enough, 1, num_clients),
            pause=check_positive("pause", pause),
            folder=None if folder is None else Path(folder),
            resume=resume,
            from_previous=from_previous,
            tensorboard=tensorboard,
        )

        inner = InnerStrategy(strategy)
        examples_key = str(inner.setting("weighted_by_key", "num-examples"))
        rules = ReplyRules(limits or Limits(), examples_key, loss_key)
        history = ReplyHistory()
        self.registry = ClientRegistry(self.options.num_clients or 0)
        self.training = Training(
            inner,
            self.registry,
            rules,
            history,
            aggregator=Aggregator(inner, aggregation, examples_key, self.options.folder),
            cohort_size=cohort_size,
            enough=self.options.enough,
            pause=self.options.pause,
            deadline=deadline,
        )
        self.evaluation = Evaluation(inner, self.registry, rules, history)

    @property
    def selector(self) -> Selector:
        """The selector. It is built when the clients are known."""
        return self.training.selector

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
        """Play the rounds. With `resume`, go on after the last finished round.

        Args:
            grid: The grid that Flower gives to the server app.
            initial_arrays: The first model.
            num_rounds: Number of the last round; rounds count from 1.
            timeout: Seconds after which an exchange ends if there is no deadline.
            train_config: Configuration that is sent with every training message.
            evaluate_config: Configuration that is sent with every evaluation message.
            evaluate_fn: Evaluates the model on the server, given the round and the model.

        Returns:
            The last model and the metrics of all rounds.

        Raises:
            ValueError: If too few clients connect, or the folder holds a run that does not fit.
        """
        check_int("num_rounds", num_rounds, 1)
        check_positive("timeout", timeout)
        run = Run(
            self,
            self.training,
            self.options,
            grid=grid,
            num_rounds=num_rounds,
            timeout=timeout,
            train_config=train_config or ConfigRecord(),
            evaluate_config=evaluate_config or ConfigRecord(),
            evaluate_fn=evaluate_fn,
        )
        return run.play(initial_arrays)

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Return the strategy's messages to the clients that the selector chooses.

        Args:
            server_round: The round, counted from 1.
            arrays: The current model.
            config: Configuration that is sent with every message.
            grid: The grid that the clients are connected to.

        Returns:
            One message for each chosen client.
        """
        return self.training.ask(server_round, arrays, config, grid)

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Judge the replies, aggregate those that count, and tell the selector who returned.

        Args:
            server_round: The round, counted from 1.
            replies: The replies to the messages of `configure_train`.

        Returns:
            The new model and the averaged metrics, each None if there is none.
        """
        return self.training.finish(server_round, replies)

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Return the strategy's evaluation messages to some of the clients that are there.

        Args:
            server_round: The round, counted from 1.
            arrays: The current model.
            config: Configuration that is sent with every message.
            grid: The grid that the clients are connected to.

        Returns:
            The messages; none if no client is there.
        """
        return self.evaluation.ask(server_round, arrays, config, grid)

    def aggregate_evaluate(
        self, server_round: int, replies: Iterable[Message]
    ) -> MetricRecord | None:
        """Average the valid evaluations, and log why the others do not count.

        Args:
            server_round: The round, counted from 1.
            replies: The replies to the messages of `configure_evaluate`.

        Returns:
            The averaged metrics, None if no evaluation is valid.
        """
        return self.evaluation.finish(server_round, replies)

    def summary(self) -> None:
        """Log how rounds are played, then the wrapped strategy's own summary."""
        end = "when all have answered"
        if self.options.deadline is not None:
            end = f"after {self.options.deadline:g} s"
        log.info(
            "%s asks %d of %d clients; rounds end %s",
            self.options.selector_name,
            self.options.cohort_size,
            len(self.registry),
            end,
        )
        self.strategy.summary()
