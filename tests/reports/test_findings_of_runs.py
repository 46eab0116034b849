"""What pages show of run folders, beside the same numbers worked out in plain loops."""

import json
from dataclasses import replace
from math import isnan, sqrt

import numpy as np
import pytest
from run_folders import SMALL, journal_entry, make_records, write_comparison, write_journal

from fedcohort.cli.pages import load_findings
from fedcohort.lab import folder as run_folder
from fedcohort.lab.config import SimulationConfig
from fedcohort.lab.simulation import load_or_simulate

CONFIG = replace(
    SMALL,
    partitions=("iid", "primary-label"),
    aggregations=("paper", "normalised"),
    mus=(0.0, 0.5),
    first_seed=5,
    seeds=2,
    targets=(0.3, 0.5, 0.99),
)


@pytest.fixture
def comparison(tmp_path):
    """Write a comparison whose last round is not tested, and in which some ask fewer clients."""
    write_comparison(tmp_path, CONFIG)
    records = make_records(CONFIG)
    records["accuracy"][-1] = np.nan
    shape = (*records["clients"].shape[:2], 1)
    for name, nothing in (("clients", -1), ("valid", False)):  # one more place, mostly empty
        more = np.full(shape, nothing, dtype=records[name].dtype)
        records[name] = np.concatenate([records[name], more], axis=2)
    records["clients"][3:7, ::2, 2] = -1
    records["valid"][3:7, ::2, 2] = False
    records["arrived"] = records["valid"] | (records["clients"] % 2 == 1)
    run_folder.save_records(tmp_path, 0, records)
    return tmp_path, records


def rows_in_order():
    """Return the selector, group and seed of each row of the batch axis."""
    rows = []
    for selector in ("e3cs-0.5", "random"):
        for partition in ("iid", "primary-label"):
            for rule in ("paper", "normalised"):
                for mu in ("0", "0.5"):
                    for seed in (5, 6):
                        kind = f"{partition} data, {rule} rule, mu {mu}"
                        rows.append((kind, selector, seed))
    return rows


def mean_and_spread(values):
    mean = sum(values) / len(values)
    return mean, sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1))


def test_every_scheme_of_a_comparison_has_the_records_of_its_own_runs(comparison):
    folder, records = comparison
    findings = load_findings(folder)
    rows = rows_in_order()
    assert set(findings.kinds) == {kind for kind, _, _ in rows}
    for kind, schemes in findings.kinds.items():
        assert list(schemes) == ["e3cs-0.5", "random"]
        for name, scheme in schemes.items():
            assert list(scheme.seeds) == [5, 6]
            for place, seed in enumerate((5, 6)):
                row = rows.index((kind, name, seed))
                asked = []
                counts = [0] * 8
                for cohort in records["clients"][:11, row].tolist():
                    clients = [client for client in cohort if client >= 0]
                    asked.append(len(clients))
                    for client in clients:
                        counts[client] += 1
                assert scheme.asked[place].tolist() == asked
                assert scheme.counts[place].tolist() == counts
                used = [sum(valid) for valid in records["valid"][:11, row].tolist()]
                assert scheme.successes[place].tolist() == used
                assert scheme.accuracy[place].tolist() == records["accuracy"][:11, row].tolist()
                assert scheme.seconds[place].tolist() == records["seconds"][:11, row].tolist()
                wasted = sum(records["wasted_seconds"][:11, row].tolist())
                assert scheme.wasted[place] == pytest.approx(wasted)
                by_class = records["class_accuracy"][10, row].tolist()
                assert scheme.class_accuracy[place].tolist() == by_class
                assert scheme.success[place] == pytest.approx(sum(used) / sum(asked))
                shares = [sum(used[: n + 1]) / sum(asked[: n + 1]) for n in range(11)]
                assert scheme.success_so_far[place].tolist() == pytest.approx(shares)


def test_the_tables_of_a_comparison_have_a_row_per_scheme_with_its_own_numbers(comparison):
    folder, records = comparison
    findings = load_findings(folder)
    rows = rows_in_order()
    for kind, table in findings.tables.items():
        assert [row["scheme"] for row in table] == ["e3cs-0.5", "random"]
        for shown in table:
            runs = [rows.index((kind, shown["scheme"], seed)) for seed in (5, 6)]
            mean, spread = mean_and_spread([records["accuracy"][10, run] for run in runs])
            expected = {"scheme": shown["scheme"], "final accuracy": f"{mean:.3f} ± {spread:.3f}"}
            for target in (0.3, 0.5, 0.99):
                rounds = []
                seconds = []
                for run in runs:
                    curve = records["accuracy"][:11, run].tolist()
                    reached = [n for n, value in enumerate(curve, start=1) if value >= target]
                    first = reached[0] if reached else float("nan")
                    rounds.append(first)
                    lengths = records["seconds"][: first if reached else 0, run].tolist()
                    seconds.append(sum(lengths) if reached else float("nan"))
                expected[f"rounds to {target:g}"] = sum(rounds) / 2
                expected[f"time to {target:g}"] = sum(seconds) / 2
            means = []
            for group in range(4):
                means.append(sum(records["class_accuracy"][10, run, group] for run in runs) / 2)
            expected["worst class"] = float(min(means))
            expected["gap"] = 100 * float(max(means) - min(means))
            clients = [records["clients"][:11, run].ravel().tolist() for run in runs]
            asked = sum(client >= 0 for own in clients for client in own)
            expected["success"] = sum(records["valid"][:11, run].sum() for run in runs) / asked
            fairness = []
            for own in clients:
                counts = [own.count(client) for client in range(8)]
                fairness.append(sum(counts) ** 2 / (8 * sum(count**2 for count in counts)))
            expected["Jain"] = sum(fairness) / 2
            wasted = [records["wasted_seconds"][:11, run].sum() for run in runs]
            expected["wasted s"] = sum(wasted) / 2
            sent = [records["wasted_bytes"][:11, run].sum() for run in runs]
            expected["wasted MB"] = sum(sent) / 2 / 1_000_000
            assert list(shown) == list(expected)
            for name, value in expected.items():
                if isinstance(value, str):
                    assert shown[name] == value
                else:
                    assert shown[name] == pytest.approx(value, rel=1e-5, nan_ok=True), name
            assert isnan(shown["time to 0.99"])


def test_a_comparison_says_what_it_is(comparison):
    folder, _ = comparison
    findings = load_findings(folder)
    assert findings.title == (
        "Client selection compared: digits, mlp, 8 clients, 3 asked per round, 12 rounds"
    )
    assert findings.seeds == "5 to 6"
    assert set(findings.targets) == set(findings.kinds)
    assert set(findings.targets.values()) == {(0.3, 0.5, 0.99)}
    assert findings.rates == (0.1, 0.3, 0.6, 0.9)
    assert findings.classes.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert findings.settings["first_seed"] == 5
    assert list(findings.allocations) == ["e3cs-0.5"]
    assert list(findings.owners) == ["iid", "primary-label"]
    assert findings.lead == [
        "Clients fail: by class, they answer 10\u00a0%, 30\u00a0%, 60\u00a0%, 90\u00a0% "
        "of the time. 2 seeds. Every scheme "
        "meets the same failures."
    ]


def test_one_seed_has_no_spread_and_the_lead_says_so(tmp_path):
    config = replace(SMALL, seeds=1, first_seed=7, selectors=("random",), partitions=("iid",))
    records = write_comparison(tmp_path, config)
    findings = load_findings(tmp_path)
    assert findings.lead[0].endswith("of the time. One seed, so differences may be chance.")
    assert len(findings.lead) == 1
    assert findings.seeds == "7"
    (table,) = findings.tables.values()
    assert table[0]["final accuracy"] == f"{records['accuracy'][-1, 0]:.3f}"


def test_the_page_of_a_simulation_has_what_was_simulated(tmp_path):
    config = SimulationConfig(
        ("e3cs-0", "random"), clients=8, cohort=3, rounds=15, seeds=2, first_seed=3
    )
    simulation = load_or_simulate("simulate", config, tmp_path)
    findings = load_findings(tmp_path)
    assert findings.title == "Selection simulated: 8 clients, 3 asked per round, 15 rounds"
    assert findings.seeds == "3 to 4"
    assert findings.rates == (0.1, 0.3, 0.6, 0.9)
    assert findings.classes.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert findings.lead == [
        "Nothing is trained. Clients fail: by class, they answer 10\u00a0%, 30\u00a0%, "
        "60\u00a0%, 90\u00a0% of the time, "
        "the same for every scheme."
    ]
    (schemes,) = findings.kinds.values()
    assert list(schemes) == ["e3cs-0", "random"]
    for row, (name, scheme) in zip(findings.tables["Schemes"], schemes.items(), strict=True):
        result = simulation.results[name]
        assert list(scheme.seeds) == [3, 4]
        assert scheme.asked.tolist() == [[3.0] * 15] * 2
        assert scheme.successes.tolist() == result.successes.tolist()
        assert scheme.counts.tolist() == result.counts.tolist()
        used = [sum(own) for own in result.successes.tolist()]
        mean, spread = mean_and_spread(used)
        medians = []
        for group in range(4):
            pooled = []
            for own in result.counts.tolist():
                pooled += own[2 * group : 2 * group + 2]
            # The median of two clients is their mean; the table has its mean over the two seeds.
            medians.append(f"{sum(pooled) / 4:.0f}")
        fairness = []
        for own in result.counts.tolist():
            fairness.append(sum(own) ** 2 / (8 * sum(count**2 for count in own)))
        assert row == {
            "selector": name,
            "success ratio": pytest.approx(mean / (3 * 15)),
            "CEP": pytest.approx(mean),
            "CEP sd": pytest.approx(spread),
            "Jain": pytest.approx(sum(fairness) / 2),
            "asked, by class": "/".join(medians),
        }


def test_the_page_of_a_flower_run_has_its_rounds_and_clients(tmp_path):
    lengths = (1000.4, 2.0, 30.0)
    outcomes = (
        {"b": "lost", "a": "arrived", "d": "rejected"},
        {"b": "failed"},
        {"a": "lost", "b": "lost", "c": "arrived"},
    )
    entries = []
    for number, (seconds, asked) in enumerate(zip(lengths, outcomes, strict=True), start=1):
        chances = {"e": 0.25, "a": 0.5 * number / 3, "b": 1.0 - 1e-7}
        entry = journal_entry(number + 4, asked, chances if number != 2 else None)
        entries.append(entry | {"seconds": seconds})
    write_journal(tmp_path, entries)
    (tmp_path / "run.json").write_text(json.dumps({"rounds": 7, "selector": "random"}))
    findings = load_findings(tmp_path)
    assert findings.title == "Flower run: random, 3 rounds, 5 clients"
    assert findings.lead == ["3 rounds took 1,032 s."]  # the last of 7 rounds is there
    assert findings.settings == {"rounds": 7, "selector": "random"}
    assert findings.client_names == ["a", "b", "c", "d", "e"]
    scheme = findings.kinds["this run"]["this run"]
    assert scheme.asked.tolist() == [[3, 1, 3]]
    assert scheme.successes.tolist() == [[1, 0, 1]]
    assert scheme.counts.tolist() == [[2, 3, 1, 1, 0]]
    assert scheme.seconds.tolist() == [[1000.4, 2.0, 30.0]]
    recorded = findings.allocations["this run"]
    assert recorded.rounds.tolist() == [4, 6]  # counted from 0; the second had no probabilities
    assert recorded.inclusion[0].tolist() == pytest.approx([1 / 6, 1 - 1e-7, 0, 0, 0.25])
    assert recorded.inclusion[1].tolist() == pytest.approx([1 / 2, 1 - 1e-7, 0, 0, 0.25])
    assert recorded.capped.tolist() == [[False, True, False, False, False]] * 2
    table = findings.tables["Clients"]
    assert [row["asked"] for row in table] == [2, 3, 1, 1, 0]
    assert [row["arrived"] for row in table] == [1, 0, 1, 0, 0]
    assert [row["success ratio"] for row in table[:4]] == [0.5, 0.0, 1.0, 0.0]
    assert isnan(table[4]["success ratio"])
    words = ["1 never answered", "2 never answered, 1 ended in an error", "-"]
    words += ["1 came, but invalid", "-"]
    assert [row["why"] for row in table] == words


def test_the_heat_map_of_a_long_flower_run_has_about_a_hundred_rounds(tmp_path):
    entries = [journal_entry(number, {"a": "arrived"}, {"a": 0.5}) for number in range(1, 202)]
    write_journal(tmp_path, entries)
    recorded = load_findings(tmp_path).allocations["this run"]
    assert recorded.rounds.tolist() == list(range(0, 201, 3))
