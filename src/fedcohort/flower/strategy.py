"""CohortStrategy: deadline rounds on Flower in which a selector decides who trains."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Result, Strategy

from fedcohort.aggregation.compatibility import check_compatible
from fedcohort.checks import check_int, check_positive
from fedcohort.flower import selection
from fedcohort.flower.aggregator import Aggregator
from fedcohort.flower.clients import ClientRegistry
from fedcohort.flower.data_sizes import DataSizes
from fedcohort.flower.deadlines import DeadlineFunction, DeadlinePolicy, check_deadline_option
from fedcohort.flower.eligibility import Eligibility, Eligible
from fedcohort.flower.evaluation import Evaluation
from fedcohort.flower.history import ReplyHistory
from fedcohort.flower.inner_strategy import InnerStrategy, check_strategy
from fedcohort.flower.limits import Limits, ReplyRules
from fedcohort.flower.openmetrics import check_address
from fedcohort.flower.options import RunOptions, check_closing, check_files, check_logs
from fedcohort.flower.run import Evaluate, Run
from fedcohort.flower.server_rule import check_aggregation
from fedcohort.flower.training import Training
from fedcohort.selection.protocol import Selector

logger = logging.getLogger("flwr.fedcohort")


class CohortStrategy(Strategy):
    """Wraps a Flower strategy: a selector decides who trains, and rounds end at the deadline.

    The strategy writes the messages, aggregates and evaluates as it always does. Only replies that
    pass all checks of `fedcohort.flower.replies` reach it.

    Args:
        strategy: A strategy of `flwr.serverapp.strategy` that averages arrays.
        selector: A name that `fedcohort list` prints, a reference such as "package.module:Mine",
            or a selector object.
        cohort_size: Number of clients to ask in each round. A selector object brings its own.
        deadline: Seconds after which a round ends; a function of `RecentTimes` that returns them;
            or "auto", which is `AutoDeadline()`. None waits for all clients, at most for the
            `timeout` of `start`; the simulation engine needs this, as its clock means nothing.
        enough: Number of valid answers at which a round closes; None waits for all. Those who had
            not answered are neither successes nor failures to the selector.
        eligible: Who may be asked at all: names, in which * stands for anything; properties of
            nodes and their values; or a function of a `ClientInfo`. None for everyone.
        seed: Seed of the selector.
        num_clients: Number of clients that will come; indices are kept for those that come late.
            None takes the number of a selector object, or else the clients there at the start.
        aggregation: "wrapped" for the aggregation of the strategy, or a name of
            `fedcohort.aggregation.registry.AGGREGATIONS`, or a reference to a rule, that needs
            neither true success rates nor the clients' learning rate. Rules that remember updates
            need `folder`.
        data_sizes: Numbers of samples by name of the client, or "replies" for those that clients
            declare, for selectors that weigh clients by their data.
        limits: Bounds that a reply must keep.
        loss_key: Metric in which clients report their loss, for selectors that use losses.
        close_early: Whether a round ends as soon as all clients have answered.
        wait: Seconds to wait for clients before the first round.
        partial_start: Whether the run may begin if fewer than `num_clients` have come after `wait`.
            If not, that is an error, because the same seed would give other cohorts.
        least_clients: Number of clients that must be there for a round. With fewer, the run
            pauses.
        pause: Seconds that the run pauses for them at most. Then it ends with an error, and
            `resume` goes on after the last round.
        folder: Folder for checkpoint and journal; None keeps nothing.
        resume: Whether to continue the run in the folder.
        from_previous: Whether to resume from the checkpoint before the last one, if the last one
            is damaged or missing. The damaged one is set aside.
        tensorboard: The same as `log="tensorboard"`.
        log: "tensorboard", "mlflow" or "wandb", or several of them, to write scalars there.
        metrics_port: Port at which numbers of the run are served as OpenMetrics text; None for
            none, 0 for a free one.
        metrics_host: Address to serve them at.

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
        deadline: float | str | DeadlineFunction | None = None,
        enough: int | None = None,
        eligible: Eligible | None = None,
        seed: int = 0,
        num_clients: int | None = None,
        aggregation: str = "wrapped",
        limits: Limits | None = None,
        loss_key: str | None = None,
        data_sizes: Mapping[str, float] | str | None = None,
        close_early: bool = True,
        wait: float = 60.0,
        partial_start: bool = False,
        least_clients: int = 1,
        pause: float = 600.0,
        folder: str | Path | None = None,
        resume: bool = False,
        from_previous: bool = False,
        tensorboard: bool = False,
        log: str | Sequence[str] = (),
        metrics_port: int | None = None,
        metrics_host: str = "127.0.0.1",
    ) -> None:
        selection.check_selector(selector, keeps_state=folder is not None)
        cohort_size = selection.resolve_cohort_size(selector, cohort_size)
        deadlines = DeadlinePolicy(check_deadline_option(deadline))
        sizes = DataSizes(data_sizes)
        example = selection.make_example(
            selector, cohort_size, deadlines.current, sizes.is_known, not deadlines.is_fixed
        )
        selection.check_loss_key(example, loss_key)
        enough = selection.resolve_enough(example, enough, cohort_size)
        is_number_announced = num_clients is not None
        num_clients = selection.resolve_num_clients(selector, num_clients, cohort_size)
        check_aggregation(aggregation, folder)
        if aggregation != "wrapped":
            check_compatible(aggregation, selection.selector_name(selector), example)
        check_strategy(strategy, aggregation, cohort_size)
        inner = InnerStrategy(strategy)
        check_closing(enough, close_early, inner.num_sampled_clients)
        logs = check_logs(log, tensorboard)
        check_files(folder, resume, from_previous, writes=bool(logs))

        self.strategy = strategy
        self.options = RunOptions(
            strategy_name=inner.class_names,
            selector=selector,
            cohort_size=cohort_size,
            num_clients=num_clients,
            seed=check_int("seed", seed, 0),
            deadline=check_deadline_option(deadline),
            enough=enough,
            aggregation=aggregation,
            close_early=close_early,
            wait=check_positive("wait", wait),
            partial_start=partial_start or not is_number_announced,
            least_clients=check_int("least_clients", least_clients, 1, num_clients),
            pause=check_positive("pause", pause),
            folder=None if folder is None else Path(folder),
            resume=resume,
            from_previous=from_previous,
            logs=logs,
            metrics_port=check_address(metrics_port, metrics_host),
            metrics_host=metrics_host,
        )

        examples_key = str(inner.setting("weighted_by_key", "num-examples"))
        rules = ReplyRules(limits or Limits(), examples_key, loss_key)
        history = ReplyHistory()
        self.registry = ClientRegistry(self.options.num_clients or 0, Eligibility(eligible))
        self.training = Training(
            inner,
            self.registry,
            rules,
            history,
            aggregator=Aggregator(inner, aggregation, examples_key, self.options.folder),
            data_sizes=sizes,
            least_clients=self.options.least_clients,
            pause=self.options.pause,
            enough=enough,
            deadlines=deadlines,
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
            end = f"after {self.options.deadline_text} s"
        logger.info(
            "%s asks %d of %d clients; rounds end %s",
            self.options.selector_name,
            self.options.cohort_size,
            len(self.registry),
            end,
        )
        self.strategy.summary()
