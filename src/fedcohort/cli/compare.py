"""`fedcohort compare`: train under several selectors, or show a finished comparison."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedcohort.checks import check_choice
from fedcohort.cli.compare_flags import add_flags, parse_setting
from fedcohort.cli.console import console, print_json, print_table, progress_bars, say
from fedcohort.cli.parse import check_rates
from fedcohort.cli.sharing import check_unshared, read_sharing
from fedcohort.lab.config import ComparisonConfig
from fedcohort.lab.config_checks import DEFAULT_WORLD
from fedcohort.lab.named_parts import data_and_model, partition_labels
from fedcohort.lab.runs import group_label
from fedcohort.reports.words import counted

if TYPE_CHECKING:
    from fedcohort.lab.comparison import Comparison
    from fedcohort.lab.shards import Shard
    from fedcohort.reports.findings import Findings

Row = Mapping[str, Any]


def _compare(
    config: Path | None,
    out: Path,
    data: Path | None,
    resume: bool,
    from_previous: bool,
    overwrite: bool,
    log: str | None,
    as_json: bool,
    shard: str | None,
    devices: str | None,
    ray: str | None,
    help_all: bool,
    **given: Any,
) -> None:
    """Train under several selectors on a federation whose clients fail.

    Results go to --out; --help-all lists all settings. Lists are comma-separated;
    names may be file.py:name.

    Example: fedcohort compare --dataset cifar10 --model cifar-cnn --clients 100 --cohort 20
    """
    # Imported here, not at the top: `--help` must not load them.
    from fedcohort.cli.pages import write_report_page
    from fedcohort.files import check_exists, read_toml
    from fedcohort.lab.comparison import run_comparison
    from fedcohort.lab.folder import save_summary
    from fedcohort.lab.sharding import run_shard, run_sharded
    from fedcohort.lab.summary import comparison_rows
    from fedcohort.reports.html.verdict import left_out
    from fedcohort.reports.pages.comparison import findings

    if log is not None:
        check_choice("log", log, ("tensorboard", "mlflow", "wandb"))
    if overwrite and resume:
        raise ValueError("overwrite must be given without resume, got both")
    settings = {}
    if config is not None:
        check_exists("config", config)
        settings = read_toml(config)
    for name, value in given.items():
        if value is not None:
            settings[name] = parse_setting(name, value)
    check_rates(given["rates"], settings.get("world", DEFAULT_WORLD))
    # A run that is resumed without any settings takes its own.
    takes_own = resume and config is None and not settings
    settings_given = None if takes_own else ComparisonConfig.from_dict(settings)
    # --devices replaces the device of a settings file, but not a flag that says otherwise.
    device_given = given["device"] if devices is not None else settings.get("device")
    own_shard, workers = read_sharing(shard, devices, ray, device_given)
    device = workers.device if workers else settings.get("device", "cpu")
    if given["compiled"] and device == "cpu":
        raise ValueError("compiled must not be given on a CPU, got it; add --device cuda")
    check_unshared(own_shard or workers, log=log)
    check_unshared(own_shard, overwrite=overwrite)
    options: dict[str, Any] = {"data": data, "resume": resume, "from_previous": from_previous}
    if resume and not as_json and not (out.is_dir() and any(out.iterdir())):
        words = " with the default settings" if takes_own else ""
        say(f"Nothing to resume in {out}: a new run starts{words}.")
    with progress_bars() as on_progress:
        options["on_progress"] = on_progress
        if own_shard is not None:
            part = run_shard(settings_given, out, own_shard, **options)
            show_shard(own_shard, part, as_json)
            return
        options["overwrite"] = overwrite
        if workers is not None:
            comparison = run_sharded(settings_given, out, workers, **options)
        else:
            comparison = run_comparison(settings_given, out, log=log, **options)

    rows = comparison_rows(comparison.config, comparison.records)
    save_summary(out, rows)
    found = findings(comparison)
    figures = draw_figures(comparison, found)
    page = write_report_page(found, out)
    if as_json:
        settings = comparison.config.as_dict()
        print_json({"command": "compare", "folder": out, "settings": settings, "rows": rows})
        return
    show_tables(comparison.config, rows)
    for sentence in left_out(found):
        console.print(sentence, markup=False, highlight=False)
    console.print(figures, markup=False, highlight=False)
    say(f"Results: {out}")
    say(page)


def show_shard(shard: "Shard", comparison: "Comparison", as_json: bool) -> None:
    """Say that a shard is finished, and how all shards become one run."""
    if as_json:
        print_json({"command": "compare", "folder": comparison.folder, "shard": str(shard)})
        return
    say(f"Shard {shard}: {comparison.folder}")
    say("When all shards are finished, the same command without --shard merges and shows them.")


def show_tables(config: ComparisonConfig, rows: Sequence[Row]) -> None:
    """Print one table for each group of runs."""
    sizes = f"K={config.clients}, k={config.cohort}, T={config.rounds}"
    seeds = counted(config.seeds, "seed")
    console.print(f"compare: {data_and_model(config)}, {sizes}, {seeds}", highlight=False)
    tables: dict[str, list[Row]] = {}
    for row in rows:
        label = group_label(row["partition"], row["aggregation"], row.get("mu"))
        tables.setdefault(label, []).append(_narrow_row(row))
    for label, table in tables.items():
        print_table(table, label)


def _narrow_row(row: Row) -> Row:
    """Return a row that fits a terminal: the group is in the title, the CSV has all columns."""
    times = [name for name in row if name.startswith("time to")]
    hidden = {
        "partition",
        "aggregation",
        "mu",
        "sd",
        "gap",
        "worst label",
        "wasted MB",
        *times[:-1],
    }
    narrow = {name: value for name, value in row.items() if name not in hidden}
    narrow["final"] = f"{row['final']:.3f}±{row['sd']:.3f}".replace("±nan", "")
    return narrow


def draw_figures(comparison: "Comparison", findings: "Findings") -> str:
    """Draw accuracy over rounds, who is left out, who owns what; return the line that says so."""
    from fedcohort.lab.summary import accuracy_curves
    from fedcohort.reports.charts.clients import labels_per_client
    from fedcohort.reports.charts.curves import accuracy_over_rounds
    from fedcohort.reports.charts.groups import accuracy_per_class, accuracy_per_label
    from fedcohort.reports.figures import has_matplotlib, save_figures
    from fedcohort.reports.report import NO_FIGURES

    if not has_matplotlib():
        return NO_FIGURES
    curves = accuracy_curves(comparison.config, comparison.records)
    figures = {"accuracy": accuracy_over_rounds(curves)}
    by_class = accuracy_per_class(findings.kinds, findings.class_rates)
    if by_class.panels:
        figures["left-out"] = by_class
    by_label = accuracy_per_label(findings.kinds)
    if by_label.panels:
        figures["labels-left-out"] = by_label
    labels = partition_labels(comparison.config)
    for partition, counts in comparison.label_counts.items():
        figures[f"owners-{labels[partition]}"] = labels_per_client({"": counts})
    paths = save_figures(figures, comparison.folder)
    return f"Figures: {', '.join(path.name for path in paths if path.suffix == '.png')}"


compare = add_flags(_compare)
