import csv
import json
import os
import re
import subprocess
import sys
from dataclasses import fields

import numpy as np
import pytest

from fedcohort import __version__
from fedcohort.lab.config import ComparisonConfig, SimulationConfig
from fedcohort.lab.folder import load_simulation_results, read_simulation_settings
from fedcohort.lab.recorder import read_allocations
from fedcohort.paper import regret
from fedcohort.paper.artefacts import ARTEFACTS
from fedcohort.reports import figures
from fedcohort.selection.registry import SELECTORS
from fedcohort.selection.sampling import SAMPLERS

TINY = ("--clients", "8", "--cohort", "3", "--rounds", "12", "--seeds", "2")
COMMANDS = (
    "simulate", "reproduce", "list", "bench", "compare", "report", "watch", "study", "advise",
    "replay",
)  # fmt: skip
EXIT_CODES = ("0 done", "1 done, except", "2 a mistake", "130 interrupted")
FIGURES = {"figure3.png", "figure3.svg", "figure4.png", "figure4.svg"}
FILES = {
    "results.npz",
    "settings.json",
    "environment.json",
    "summary.csv",
    "simulate.md",
    "simulate.tex",
    "report.html",
}
FILES |= {*FIGURES, "allocations"}
TERMINAL = (
    "COLUMNS",
    "LINES",
    "TERMINAL_WIDTH",
    "FORCE_COLOR",
    "PY_COLORS",
    "GITHUB_ACTIONS",
    "TTY_COMPATIBLE",
    "NO_COLOR",
)


@pytest.fixture
def call(fedcohort):
    """Return a function that runs the command line: exit code, output and errors."""
    return fedcohort


@pytest.fixture
def undrawn(monkeypatch):
    """Spare the time that figures take."""
    monkeypatch.setattr(figures, "has_matplotlib", lambda: False)


def in_a_process(*args, **env):
    """Run the command line as a user does."""
    environ = {key: value for key, value in os.environ.items() if key not in TERMINAL}
    return subprocess.run(
        [sys.executable, "-m", "fedcohort", *args],
        capture_output=True,
        encoding="utf-8",
        env={**environ, **env},
        check=False,
    )


def load(folder):
    return read_simulation_settings(folder), load_simulation_results(folder)


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def is_one_line_of_error(err):
    return err.startswith("error: ") and err.count("\n") == 1 and err.endswith("\n")


@pytest.mark.parametrize(
    "command", [(), *((name,) for name in COMMANDS)], ids=["fedcohort", *COMMANDS]
)
@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_of_every_command_fits_in_100_columns_and_cuts_nothing_off(call, command, flag):
    code, out, err = call(*command, flag)
    assert (code, err) == (0, "")
    assert out.lstrip().startswith("Usage: fedcohort")
    assert max(map(len, out.splitlines())) <= 100
    assert "…" not in out


@pytest.mark.parametrize(
    "command", [(), *((name,) for name in COMMANDS)], ids=["fedcohort", *COMMANDS]
)
def test_help_of_every_command_fits_a_screen_and_has_an_example(call, command):
    _, out, _ = call(*command, "--help")
    assert len(out.splitlines()) <= 46
    assert "Example: fedcohort" in out


def test_help_says_what_exit_codes_mean(call):
    _, out, _ = call("--help")
    said = " ".join(out.split())
    assert [code for code in EXIT_CODES if code not in said] == []


def test_all_settings_of_compare_are_listed_on_request(call):
    _, out, _ = call("compare", "--help-all")
    assert [line.split()[0] for line in out.splitlines()] == [
        f"--{field.name.replace('_', '-')}".replace("-options", "-option")
        for field in fields(ComparisonConfig)
    ]
    assert re.search("--world-option +NAME=VALUE, repeatable", out)


@pytest.mark.parametrize(
    ("typed", "wanted"),
    [
        ("fedcohort wa", {"watch"}),
        ("fedcohort reproduce table", {"table2", "table3"}),
        ("fedcohort bench s", {"selection"}),
    ],
)
def test_the_shell_completes_commands_and_names(typed, wanted):
    done = in_a_process(
        _FEDCOHORT_COMPLETE="complete_bash", COMP_WORDS=typed, COMP_CWORD=str(typed.count(" "))
    )
    assert set(done.stdout.split()) == wanted


def test_list_gives_the_names_as_json(call):
    code, out, err = call("list", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["selectors"] == list(SELECTORS)


def test_simulate_prints_json_alone_with_the_rows_of_the_summary_and_null_for_what_is_no_number(
    call, tmp_path
):
    code, out, err = call(
        "simulate", *TINY, "--seeds", "1", "--selectors", "random", "--out", "run", "--json"
    )
    assert (code, err) == (0, "")
    said = json.loads(out)
    (row,) = said["rows"]
    assert (said["command"], said["folder"], said["settings"]["rounds"]) == ("simulate", "run", 12)
    assert row["CEP"] == load(tmp_path / "run")[1]["random/successes"].sum()
    assert row["CEP sd"] is None


def test_every_command_is_tested_here(call):
    _, out, _ = call("--help")
    found = re.findall(r"^│ ([a-z]+) ", out, flags=re.MULTILINE)
    assert sorted(found) == sorted(COMMANDS)


@pytest.mark.parametrize(
    ("command", "names"), [("reproduce", [*ARTEFACTS, "all"]), ("bench", ["selection"])]
)
def test_help_says_which_names_may_be_given(call, command, names):
    _, out, _ = call(command, "--help")
    described = out.split("Arguments")[0].split("Example")[0]
    assert [name for name in names if name not in described] == []


@pytest.mark.usefixtures("undrawn")
def test_bands_are_explained_where_several_seeds_have_them(call):
    assert "bands one standard deviation" in call("simulate", *TINY, "--out", "two")[1]
    one = call("simulate", *TINY, "--seeds", "1", "--out", "one")[1]
    assert "bands" not in one


def test_the_help_of_simulate_names_the_samplers(call):
    _, out, _ = call("simulate", "--help")
    assert [name for name in SAMPLERS if name not in out] == []


def test_the_version_is_shown(call):
    assert call("--version") == (0, f"fedcohort {__version__}\n", "")


def test_list_names_every_selector_sampler_and_experiment(call):
    code, out, err = call("list")
    assert (code, err) == (0, "")
    words = set(re.split(r"[\s,:]+", out))
    assert {*SELECTORS, *SAMPLERS, *ARTEFACTS, "selection"} <= words


def test_simulate_writes_results_settings_summary_and_figures(call, tmp_path):
    code, out, err = call(
        "simulate", *TINY, "--selectors", "e3cs-0.5, random", "--eta", "auto", "--out", "new/run"
    )
    assert (code, err) == (0, "")
    folder = tmp_path / "new" / "run"
    assert {path.name for path in folder.iterdir()} == FILES
    settings, arrays = load(folder)
    asked = SimulationConfig(("e3cs-0.5", "random"), 8, 3, 12, 2, eta="auto")
    assert settings == {
        "experiment": "simulate",
        "version": __version__,
        **json.loads(json.dumps(asked.as_dict())),
    }
    assert arrays["random/successes"].shape == (2, 12)
    with (folder / "summary.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["selector"] for row in rows] == ["e3cs-0.5", "random"]
    assert [float(row["CEP"]) for row in rows] == [
        arrays[f"{n}/successes"].sum() / 2 for n in ("e3cs-0.5", "random")
    ]
    assert "new/run" in out
    assert all(name in out for name in FIGURES)
    assert out.splitlines()[-1] == "Report: new/run/report.html"


@pytest.mark.usefixtures("undrawn")
def test_the_same_seed_gives_the_same_results_and_another_seed_others(call, tmp_path):
    for out, first in (("a", "3"), ("b", "3"), ("c", "7")):
        assert (
            call("simulate", *TINY, "--selectors", "e3cs-inc", "--first-seed", first, "--out", out)[
                0
            ]
            == 0
        )
    a, b, c = (load(tmp_path / out)[1] for out in "abc")
    assert all(np.array_equal(a[name], b[name]) for name in a)
    assert not np.array_equal(a["e3cs-inc/answering"], c["e3cs-inc/answering"])
    assert (tmp_path / "a" / "summary.csv").read_bytes() == (
        tmp_path / "b" / "summary.csv"
    ).read_bytes()


@pytest.mark.usefixtures("undrawn")
def test_a_folder_takes_the_same_settings_again_and_others_only_with_overwrite(call, tmp_path):
    simulate = ("simulate", *TINY, "--selectors", "random", "--out", "run")
    assert call(*simulate)[0] == 0
    results = load(tmp_path / "run")[1]
    assert call(*simulate)[0] == 0
    assert all(
        np.array_equal(results[name], array) for name, array in load(tmp_path / "run")[1].items()
    )

    before = contents(tmp_path / "run")
    code, out, err = call(*simulate, "--rates", "0.2,0.7")
    assert (code, out) == (2, "")
    assert is_one_line_of_error(err)
    assert "out must not hold results of other settings, got run" in err
    assert contents(tmp_path / "run") == before

    assert call(*simulate, "--rates", "0.2,0.7", "--overwrite")[0] == 0
    assert load(tmp_path / "run")[0]["rates"] == [0.2, 0.7]


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("name", ["results.npz", "settings.json"])
def test_damaged_results_are_refused_with_what_helps(call, tmp_path, name):
    simulate = ("simulate", *TINY, "--selectors", "random", "--out", "run")
    assert call(*simulate)[0] == 0
    (tmp_path / "run" / name).write_bytes(b"damaged")
    code, _, err = call(*simulate)
    assert code == 2
    assert is_one_line_of_error(err)
    assert err.endswith("; add --overwrite to play it again\n")
    assert call(*simulate, "--overwrite")[0] == 0


def test_without_a_command_the_help_is_shown_and_nothing_else(call):
    code, out, err = call()
    assert code == 2
    assert "Usage: fedcohort" in out + err
    assert "error" not in err


@pytest.mark.usefixtures("undrawn")
def test_probabilities_of_the_selectors_before_do_not_stay(call, tmp_path):
    simulate = ("simulate", *TINY, "--out", "run", "--overwrite", "--selectors")
    call(*simulate, "e3cs-0,random")
    assert set(read_allocations(tmp_path / "run")) == {"e3cs-0"}
    call(*simulate, "random")
    assert read_allocations(tmp_path / "run") == {}


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(
    "name",
    ["reproduce.json", "runs/digits-k20-paper-T4-d3d6a394/settings.toml", "runs-digits.parquet"],
)
def test_a_folder_of_a_reproduction_is_refused(call, tmp_path, name):
    path = tmp_path / "run" / name
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    code, _, err = call("simulate", *TINY, "--out", "run", "--overwrite")
    assert (code, [one for one in (tmp_path / "run").rglob("*") if one.is_file()]) == (2, [path])
    assert "out must not hold a reproduction, got run; choose another" in err


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(
    ("file", "kind"), [("settings.toml", "training run"), ("rounds.jsonl", "Flower run")]
)
def test_a_folder_of_another_run_is_refused(call, tmp_path, file, kind):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / file).write_text("rounds = 3\n")
    before = contents(tmp_path / "run")
    code, _, err = call("simulate", *TINY, "--out", "run", "--overwrite")
    assert code == 2
    assert f"out must not hold a {kind}, got run" in err
    assert contents(tmp_path / "run") == before


WRONG = {
    "more asked than there are": (("--cohort", "9"), "cohort .* between 1 and 8, got 9"),
    "nobody asked": (("--cohort", "0"), "cohort .* between 1 and 8, got 0"),
    "no seeds": (("--seeds", "0"), "seeds .* at least 1, got 0"),
    "no rounds": (("--rounds", "0"), "rounds .* at least 1, got 0"),
    "negative seed": (("--first-seed", "-1"), "first.seed .* at least 0, got -1"),
    "fewer clients than classes": (
        ("--clients", "3"),
        "clients .* at least 4, one for each rate, got 3",
    ),
    "rate above one": (("--rates", "1.5"), "rates .* between 0.0 and 1.0, got 1.5"),
    "rate that is nan": (("--rates", "nan"), "rates .* numbers, got 'nan'"),
    "rate that is a word": (("--rates", "x"), "rates .* numbers, got 'x'"),
    "no rates": (("--rates", ","), r"rates must be a list of at least one, got \[\]"),
    "a gap between rates": (("--rates", "0.5,,0.9"), "rates .* without gaps, got '0.5,,0.9'"),
    "a gap between selectors": (("--selectors", "random,"), "selectors .* gaps, got 'random,'"),
    "rates that a world does not use": (
        ("--world", "trace", "--world-file", "t.csv", "--rates", "0.5"),
        "rates must not be given for the world 'trace', .*, got '0.5'",
    ),
    "no selectors": (("--selectors", ","), "selectors .* at least one"),
    "unknown selector": (
        ("--selectors", "random,e3cs-05"),
        "selector .*random.*, got 'e3cs-05'; did you mean 'e3cs-0.5'",
    ),
    "selector that needs losses": (("--selectors", "pow-d"), "selector .* losses .*, got 'pow-d'"),
    "unknown sampler": (
        ("--sampler", "sistematic"),
        "sampler .*pivotal.*, got 'sistematic'; did you mean 'systematic'",
    ),
    "negative eta": (("--eta", "-1"), "eta .* above 0, got -1"),
    "zero eta": (("--eta", "0"), "eta .* above 0, got 0"),
    "eta that is a word": (("--eta", "foo"), "eta .* number.*, got 'foo'"),
    "empty eta": (("--eta", ""), "eta .* number.*, got ''"),
    "eta of commas": (("--eta", ","), "eta .* number.*, got ','"),
    "two etas": (("--eta", "0.5,0.7"), "eta .* number.*, got '0.5,0.7'"),
    "eta that no selector uses": (
        ("--eta", "-1", "--selectors", "random"),
        "eta .* above 0, got -1",
    ),
    "clients that are a word": (("--clients", "x"), "clients.*'x'"),
    "unknown option": (("--clans", "3"), "--clans"),
    "option without its value": (("--clients",), "clients"),
}


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("mistake", WRONG)
def test_a_mistake_ends_with_code_2_and_one_line_that_names_argument_bound_and_value(
    call, tmp_path, mistake
):
    args, message = WRONG[mistake]
    code, out, err = call("simulate", *TINY, "--out", "run", *args)
    assert code == 2
    assert is_one_line_of_error(err), err
    assert re.search(message, err)
    assert out == ""
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("reproduce", "figure33"), "name .*regret.*, got 'figure33'; did you mean 'figure3'"),
        (("reproduce", "figure3", "--seeds", "0"), "seeds .* at least 1, got 0"),
        (("reproduce", "figure3", "--sampler", "no"), "sampler .*, got 'no'"),
        (
            ("reproduce", "all", "figure99", "--seeds", "1", "--rounds", "8"),
            "name .*regret.*, got 'figure99'",
        ),
        (("reproduce",), "(?i)names"),
        (("bench", "selektion"), "name .*, got 'selektion'; did you mean 'selection'"),
        (("simulat",), r"No such command 'simulat'\. Did you mean 'simulate'\?$"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
@pytest.mark.usefixtures("undrawn")
def test_a_mistake_in_any_command_ends_with_code_2_and_one_line(
    call, tmp_path, monkeypatch, args, message
):
    monkeypatch.setattr(regret, "SWITCH_ROUNDS", 40)
    code, out, err = call(*args)
    assert code == 2
    assert is_one_line_of_error(err), err
    assert re.search(message, err)
    assert out == ""
    assert list(tmp_path.iterdir()) == []


def test_out_that_is_a_file_is_refused_and_left_alone(call, tmp_path):
    (tmp_path / "taken").write_text("mine")
    for out in ("taken", "taken/run"):
        code, _, err = call("simulate", *TINY, "--selectors", "random", "--out", out)
        assert code == 2
        assert is_one_line_of_error(err)
        assert out in err
    assert (tmp_path / "taken").read_text() == "mine"


def test_a_mistake_in_the_second_name_is_found_before_the_first_is_run(call, tmp_path):
    code, _, err = call(
        "reproduce", "figure3", "figure55", "--seeds", "1", "--rounds", "8", "--out", "run"
    )
    assert code == 2
    assert is_one_line_of_error(err)
    assert list(tmp_path.iterdir()) == []


def test_reproduce_stores_a_simulation_once_and_gives_every_artefact_a_folder(call, tmp_path):
    code, _, err = call(
        "reproduce", "figure3", "figure4", "--seeds", "1", "--rounds", "8", "--out", "run"
    )
    assert (code, err) == (0, "")
    settings, arrays = load(tmp_path / "run" / "participation")
    assert (settings["experiment"], settings["rounds"], settings["sampler"]) == (
        "participation",
        8,
        "successive",
    )
    assert arrays["fedcs/counts"].shape == (1, 100)
    for name in ("figure3", "figure4"):
        assert (tmp_path / "run" / name / f"{name}.svg").exists()
        assert not (tmp_path / "run" / name / "results.npz").exists()


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("rounds", [3, 8])
def test_regret_is_reproduced_in_few_rounds(call, tmp_path, monkeypatch, rounds):
    monkeypatch.setattr(regret, "SWITCH_ROUNDS", 40)
    code, _, err = call(
        "reproduce", "regret", "--seeds", "2", "--rounds", str(rounds), "--out", "run"
    )
    assert (code, err) == (0, "")
    with (tmp_path / "run" / "regret" / "summary.csv").open(newline="") as file:
        assert len(list(csv.DictReader(file))) == 4 * 2 * 3 + 3


def test_an_interrupt_ends_with_code_130_and_leaves_nothing(call, tmp_path, monkeypatch):
    def interrupted(setting, *rest):
        raise KeyboardInterrupt

    monkeypatch.setattr("fedcohort.lab.simulation.simulate", interrupted)
    code, out, err = call("simulate", *TINY, "--out", "run")
    assert (code, out) == (130, "")
    assert err == "error: interrupted; the same command starts anew\n"
    assert list(tmp_path.iterdir()) == []


def test_without_matplotlib_simulate_says_what_to_install_and_writes_the_rest(
    call, tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    code, out, err = call("simulate", *TINY, "--selectors", "random", "--out", "run")
    assert (code, err) == (0, "")
    assert "pip install 'fedcohort[plots]'" in out
    assert {path.name for path in (tmp_path / "run").iterdir()} == FILES - {
        *FIGURES,
        "allocations",
    }  # random has none


@pytest.mark.usefixtures("undrawn")
def test_the_table_names_every_selector_in_full_where_there_is_no_terminal(call):
    _, out, _ = call("simulate", *TINY, "--out", "run")
    assert [name for name in SimulationConfig().selectors if f" {name} " not in out] == []


def test_a_users_process_writes_results_and_no_escape_codes(tmp_path):
    done = in_a_process("simulate", *TINY, "--out", "run")
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    assert (tmp_path / "run" / "settings.json").exists()


def test_a_users_mistake_is_one_line_without_traceback_and_code_2_in_a_process(tmp_path):
    done = in_a_process("simulate", "--cohort", "200", "--out", "run")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: cohort must be a whole number between 1 and 100, got 200\n"
    assert not (tmp_path / "run").exists()


def test_a_long_message_stays_on_one_line_in_a_narrow_terminal():
    done = in_a_process("simulate", "--selectors", "e3cs-05", COLUMNS="40")
    assert done.returncode == 2
    assert is_one_line_of_error(done.stderr)
    assert "\x1b" not in done.stderr


def test_a_message_with_brackets_is_shown_as_it_is(call):
    code, _, err = call("simulate", *TINY, "--selectors", "[bold]x[/nope]")
    assert code == 2
    assert "got '[bold]x[/nope]'" in err


def test_output_for_a_reader_without_unicode_is_no_mistake():
    done = in_a_process("list", PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_the_quick_benchmark_prints_a_table_with_the_machine_medians_and_spread():
    done = in_a_process("bench", "selection", "--quick", COLUMNS="200")
    assert (done.returncode, done.stderr) == (0, "")
    title, table = re.split(r"─+", done.stdout)
    assert re.match(
        r"bench selection: .*\d+ cores, Python 3\.\d+\.\d+, NumPy \d", " ".join(title.split())
    )
    cells = [re.split(r"\s{2,}", line.strip()) for line in table.splitlines() if line.strip()]
    whole_rounds = [row[0].split(":")[0] for row in cells if row[0].endswith("one whole round")]
    assert whole_rounds == [
        "K=1,000, k=100",
        "K=10,000, k=1,000",
        "K=100,000, k=10,000",
        "K=1,000,000, k=10,000",
    ]
    for row in cells:
        median, low, high = (float(value.replace(",", "")) for value in row[1:4])
        assert 0 < low <= median <= high
        assert int(row[5]) >= 3


@pytest.mark.parametrize(
    "said", ["DefaultCPUAllocator: can't allocate memory: you tried", "CUDA out of memory. Tried"]
)
def test_memory_that_pytorch_cannot_have_is_one_line(call, monkeypatch, said):
    def too_much(*args, **options):
        raise RuntimeError(f"{said}\nand more of it")

    monkeypatch.setattr("fedcohort.paper.simulations.load_or_simulate", too_much)
    code, _, err = call("reproduce", "figure3", "--rounds", "2", "--seeds", "1", "--out", "run")
    assert (code, err) == (2, f"error: not enough memory: {said}\n")
