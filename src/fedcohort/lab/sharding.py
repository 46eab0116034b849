"""Train the shards of a comparison: one of them, or all on several devices or on Ray."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from fedcohort.data import Dataset, load
from fedcohort.lab import folder as run_folder
from fedcohort.lab.comparison import run_comparison
from fedcohort.lab.comparison_folder import Comparison
from fedcohort.lab.config import ComparisonConfig
from fedcohort.lab.devices import Job, parse_devices, run_on_devices
from fedcohort.lab.ray_shards import cluster_slots, connected, run_on_ray
from fedcohort.lab.shard_checks import check_shards, read_whole_config
from fedcohort.lab.shards import Shard, check_count, shard_config
from fedcohort.lab.simulation import Progress

MakeWork = Callable[[Shard], Callable[..., object]]


@dataclass(frozen=True)
class ShardWorkers:
    """Who trains the shards: devices of this machine, or a Ray cluster.

    Attributes:
        devices: Names of devices, one process each; none on a Ray cluster.
        ray: Address of a Ray cluster, None for devices.
        device: Kind of the devices: cpu or cuda.
    """

    devices: tuple[str, ...]
    ray: str | None
    device: str

    @property
    def name(self) -> str:
        """Name of the argument that they were given by."""
        return "devices" if self.ray is None else "ray"

    def __str__(self) -> str:
        return self.ray or ",".join(self.devices)

    @staticmethod
    def on_devices(devices: Sequence[str]) -> "ShardWorkers":
        """Return the devices of this machine; those that are not there are refused."""
        return ShardWorkers(tuple(devices), None, parse_devices(devices))

    @staticmethod
    def on_ray(address: str, device: str = "cpu") -> "ShardWorkers":
        """Return a Ray cluster, which is not asked yet."""
        if device not in ("cpu", "cuda"):
            raise ValueError(f"device must be cpu or cuda on a Ray cluster, got {device!r}")
        return ShardWorkers((), address, device)

    def train(
        self,
        make_work: MakeWork,
        config: ComparisonConfig,
        folder: Path,
        count: int | None = None,
        on_progress: Progress | None = None,
        on_ready: Callable[[int], None] | None = None,
    ) -> None:
        """Train all shards.

        Args:
            make_work: Returns what trains a shard; it can be pickled, and takes `on_progress`.
            config: Settings with the seeds that are shared out.
            folder: Folder for logs.
            count: How many shards there are already; None for one per device.
            on_progress: Called with a few words, what is done and what there is in all.
            on_ready: Called with the number of shards before the first begins, when the workers
                are there.

        Raises:
            ValueError: If there are more devices than seeds, or a shard fails.
        """
        if self.ray is None:
            if count is None:
                check_count(config, len(self.devices), "devices")
                count = len(self.devices)
            if on_ready is not None:
                on_ready(count)
            run_on_devices(_make_jobs(make_work, folder, count), self.devices, on_progress)
            return
        with connected(self.ray) as ray:
            slots = sum(cluster_slots(ray, self.device))
            if count is None:
                count = min(config.seeds, slots)
            if on_ready is not None:
                on_ready(count)
            run_on_ray(ray, _make_jobs(make_work, folder, count), self.device, on_progress)


def _make_jobs(make_work: MakeWork, folder: Path, count: int) -> list[Job]:
    jobs = []
    for number in range(1, count + 1):
        shard = Shard(number, count)
        jobs.append(Job(shard, make_work(shard), run_folder.shard_log(folder, number, count)))
    return jobs


def run_shard(
    config: ComparisonConfig | None,
    folder: Path,
    shard: Shard,
    *,
    data: Path | None = None,
    resume: bool = False,
    from_previous: bool = False,
    on_progress: Progress | None = None,
) -> Comparison:
    """Train what is left of one shard of a comparison and return it.

    When all shards are finished, `run_comparison` merges them.

    Args:
        config: The settings of the whole comparison. None takes those of the folder's shards.
        folder: The folder of the whole comparison; the shard has a folder of its own there.
        shard: Which shard.
        data: Folder with data sets.
        resume: Whether to go on with an unfinished shard.
        from_previous: Whether to go on from the checkpoint before the last one, if the last one
            is damaged or missing.
        on_progress: Called with a few words, the rounds done and the rounds in all.

    Raises:
        ValueError: If the folder holds something else, or shards of other settings or of
            another number.

    Examples:
        >>> from pathlib import Path
        >>> from fedcohort.lab.sharding import run_shard
        >>> config = ComparisonConfig(seeds=4)
        >>> run_shard(config, Path("runs/big"), Shard(1, 4))  # doctest: +SKIP
    """
    config = check_shards(config, folder, shard.count)
    return _train_one(
        config,
        folder,
        shard,
        data=data,
        resume=resume,
        from_previous=from_previous,
        on_progress=on_progress,
    )


def _train_one(config: ComparisonConfig, folder: Path, shard: Shard, **options: Any) -> Comparison:
    """Train what is left of one shard, in a folder that was checked before."""
    own = run_folder.shard_folder(folder, shard.number, shard.count)
    return run_comparison(shard_config(config, shard), own, **options)


def run_sharded(
    config: ComparisonConfig | None,
    folder: Path,
    workers: ShardWorkers,
    *,
    data: Path | None = None,
    resume: bool = False,
    from_previous: bool = False,
    overwrite: bool = False,
    on_progress: Progress | None = None,
) -> Comparison:
    """Train what is left of a comparison on several devices, and merge their shards.

    Args:
        config: The settings; `device` becomes the kind of the workers'. None takes those of the
            folder's shards, or the defaults if it holds none.
        folder: The run folder.
        workers: Devices, or a Ray cluster.
        data: Folder with data sets.
        resume: Whether to go on with unfinished shards.
        from_previous: Whether to go on from the checkpoint before the last one, if the last one
            is damaged or missing.
        overwrite: Whether to discard what the folder holds.
        on_progress: Called with a few words, the rounds done and the rounds in all.

    Raises:
        ValueError: If the folder holds something else, or a run that was begun on workers of
            another kind, or a shard cannot be trained.
    """
    run_folder.check_out(folder)
    with run_folder.locked(folder):
        run_folder.check_takes_comparison(folder)
        is_begun = run_folder.has_comparison(folder) or run_folder.find_shards(folder)
        if config is None and not is_begun:
            config = ComparisonConfig()
        if config is not None:
            config = replace(config, device=workers.device)
        if overwrite:
            config = config or read_whole_config(folder)
        else:
            config = check_shards(config, folder)
            if run_folder.has_unmerged_shards(folder) and not resume:
                raise ValueError(
                    f"out must not hold an unfinished run, got {folder} with shards; add --resume"
                )
        if config.device != workers.device:
            raise ValueError(
                f"{workers.name} must be of the kind {config.device}, as those of the run in "
                f"{folder} were, got {workers} of the kind {workers.device}"
            )
        if overwrite or not run_folder.has_comparison(folder):
            _train_all(config, folder, workers, data, from_previous, overwrite, on_progress)
    return run_comparison(config, folder, data=data)


def _train_all(
    config: ComparisonConfig,
    folder: Path,
    workers: ShardWorkers,
    data: Path | None,
    from_previous: bool,
    overwrite: bool,
    on_progress: Progress | None,
) -> None:
    dataset = load(config.dataset, data)  # Once, before several processes look for it.
    count = None
    on_ready = None
    if overwrite:
        on_ready = partial(_discard, config, dataset, folder)
    else:
        counts = {count for _, count in run_folder.find_shards(folder)}
        count = next(iter(counts), None)

    def make_work(shard: Shard) -> Callable[..., object]:
        options: dict[str, Any] = {"data": data, "resume": True, "from_previous": from_previous}
        return partial(_train_one, config, folder, shard, **options)

    workers.train(make_work, config, folder, count, on_progress, on_ready)


def _discard(config: ComparisonConfig, dataset: Dataset, folder: Path, count: int) -> None:
    """Discard the run in a folder, unless the shards that are to replace it cannot begin."""
    from fedcohort.lab.trial import Trial  # Imported here: only training needs PyTorch.

    # On a CPU, whatever the workers have: this process takes no memory of their GPUs.
    settings = replace(config, device="cpu", precision="float32", compiled=False)
    Trial(shard_config(settings, Shard(1, count)), dataset, folder)
    run_folder.discard_shards(folder)  # first: it is refused if one is in use
    run_folder.discard_comparison(folder)
