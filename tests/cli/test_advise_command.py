"""`fedcohort advise` and `fedcohort replay` from the command line."""

import json
import shutil
import tomllib
from pathlib import Path

import numpy as np
import pytest

from fedcohort.lab.config import ComparisonConfig

FOLDERS = Path(__file__).parents[1] / "compatibility" / "folders"
DESCRIBED = ("advise", "--clients", "12", "--cohort", "4", "--rates", "0.3,0.9", "--rounds", "40")


def write_log(path, rounds=40, clients=10, cohort=4, inclusion=True):
    """Uniform selection among clients of which the last answers best."""
    rng = np.random.default_rng(0)
    lines = ["round,client,asked,arrived,seconds,inclusion"]
    for round in range(rounds):
        for client in rng.choice(clients, size=cohort, replace=False):
            came = int(rng.random() < 0.2 + 0.07 * client)
            seconds = f"{rng.uniform(1, 4):.2f}" if came else ""
            share = cohort / clients if inclusion else ""
            lines.append(f"{round},{client},1,{came},{seconds},{share}")
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_described_federation_gets_advice_and_settings_to_paste(fedcohort, tmp_path):
    code, out, err = fedcohort(*DESCRIBED, "--out", "advice")
    assert (code, err) == (0, "")
    for words in ("What the log shows", "Deadline", "Cohort", "Selector", "Aggregation"):
        assert words in out
    assert "CohortStrategy(" in out
    written = json.loads((tmp_path / "advice/advice.json").read_text())
    assert written["clients"] == 12
    assert written["rounds"] == 40  # as many as --rounds says
    assert "Ranges in brackets are 95 % intervals" in out
    settings = tomllib.loads((tmp_path / "advice/settings.toml").read_text())
    assert ComparisonConfig.from_dict(settings).clients == 12
    compile((tmp_path / "advice/strategy.py").read_text(), "strategy.py", "exec")
    code, _, err = fedcohort("report", "advice")
    assert code == 2
    assert "got advice in advice; give the run that the advice was made from" in err
    for command in ("advise", "replay"):
        code, _, err = fedcohort(command, "advice")
        assert code == 2
        assert "source must be a run, got advice in advice; give the run that the advice was" in err


def test_the_advice_on_a_log_is_json_on_request(fedcohort, tmp_path):
    path = write_log(tmp_path / "log.csv")
    code, out, err = fedcohort("advise", path, "--deadline", "4", "--rounds", "40", "--json")
    assert (code, err) == (0, "")
    said = json.loads(out)
    assert said["command"] == "advise"
    assert said["rounds"] == 40
    assert said["deadline"]["present"] == 4
    assert {one["topic"] for one in said["sentences"]} >= {"seen", "deadline", "selector"}


def test_a_folder_of_simulate_is_advised(fedcohort):
    code, out, _ = fedcohort("advise", FOLDERS / "simulate", "--selectors", "random")
    assert code == 0
    assert "A simulation keeps no rounds" in out


@pytest.mark.parametrize("kind", ["compare", "compare-unfinished", "simulate", "flower", "export"])
def test_advice_never_goes_into_a_folder_that_holds_a_run(fedcohort, tmp_path, kind):
    run = tmp_path / "run"
    shutil.copytree(FOLDERS / kind, run)
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    code, out, err = fedcohort(*DESCRIBED, "--out", "run")
    assert (code, out) == (2, "")
    assert err.startswith("error: out must not hold a ")
    assert err.endswith(", got run; choose another\n")
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before


def test_advice_never_goes_beside_the_shards_of_a_run(fedcohort, tmp_path):
    shutil.copytree(FOLDERS / "compare", tmp_path / "run/shards/1-of-2")
    code, _, err = fedcohort(*DESCRIBED, "--out", "run")
    assert code == 2
    assert "out must not hold a comparison, got run; choose another" in err


@pytest.mark.parametrize("name", ["strategy.py", "report.html"])
def test_advice_never_replaces_a_file_that_it_did_not_write(fedcohort, tmp_path, name):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / name).write_text("my own")
    code, out, err = fedcohort(*DESCRIBED, "--out", "mine")
    assert (code, out) == (2, "")
    assert err == (
        f"error: out must not hold a {name} that advise did not write, got mine; choose another\n"
    )
    assert (tmp_path / "mine" / name).read_text() == "my own"


def test_advice_may_be_written_again(fedcohort):
    for _ in range(2):
        code, out, err = fedcohort(*DESCRIBED, "--selectors", "random", "--out", "advice")
        assert (code, err) == (0, "")
        assert out.startswith("Note: ")
        assert "; aggregate with the normalised rule" in out.splitlines()[1]


def test_the_selectors_that_the_user_names_are_trained(fedcohort, monkeypatch):
    given = []

    def train(advice, folder, changes, data, on_progress):
        given.append(changes)
        return advice

    monkeypatch.setattr("fedcohort.advice.training.train", train)
    training = ("--dataset", "digits", "--seeds", "1", "--out", "advice")
    code, _, err = fedcohort(*DESCRIBED, "--selectors", "e3cs-0.8,e3cs-0.5", *training)
    assert (code, err) == (0, "")
    assert given[0]["selectors"] == ("random", "e3cs-0.8", "e3cs-0.5")
    fedcohort(*DESCRIBED, *training)
    assert "selectors" not in given[1]


@pytest.mark.slow
def test_the_settings_are_trained_on_request(fedcohort, tmp_path):
    given = ("--selectors", "random", "--dataset", "digits", "--model", "mlp", "--seeds", "1")
    code, out, err = fedcohort(*DESCRIBED[:-1], "6", *given, "--out", "advice")
    assert (code, err) == (0, "")
    assert "Trained on iid data, `random` with `normalised` ends at" in out
    assert (tmp_path / "advice/training/settings.toml").exists()


REFUSED = {
    ("advise",): "source must be given, or clients and rates, got no source, clients=None",
    ("advise", "--clients", "5"): "got no source, clients=5 and rates=None",
    ("advise", "--clients", "5", "--rates", "0.5", "--selector", "x"): "selector must be left out",
    ("advise", "--clients", "5", "--rates", "0.5", "--spread", "1"): "spread must be left out",
    ("advise", "--clients", "5", "--rates", ","): "rates must be at least one number, got ','",
    ("advise", "log.csv", "--seeds", "2"): "seeds must be left out without dataset or model, got 2",
    ("advise", "log.csv", "--data", "x"): "data must be left out without dataset or model",
    ("advise", "log.csv", "--selectors", ","): "selectors must name at least one selector",
    ("advise", FOLDERS / "flower", "--deadline", "5"): "deadline must be left out for a Flower run",
    ("advise", FOLDERS / "flower", "--cohort", "5"): "cohort must be left out for a Flower run",
    ("advise", FOLDERS / "flower", "--rates", "1"): "rates must be left out for",
    ("advise", FOLDERS / "simulate", "--round-seconds", "5"): "round_seconds must be left out",
    ("advise", "log.csv", "--cohort", "5"): "cohort must be left out for a log in CSV",
    ("advise", "log.csv", "--clients", "5"): "clients must be left out for log.csv",
    ("advise", "missing.csv"): "missing.csv must be a file",
    ("advise", "."): "source must be a folder of a Flower run",
    ("advise", "log.csv", "--keep", "2"): "keep must be between 0.0 and 1.0, got 2.0",
    ("advise", "log.csv", "--needed", "99"): "needed must be a whole number between 1 and 10",
    ("advise", "log.csv", "--dataset", "digits"): "out must be given",
    ("advise", "log.csv", "--selectors", "nonsense"): "nonsense",
    ("advise", "log.csv", "--selectors", "oort"): "got 'oort', which needs data sizes",
    ("advise", FOLDERS / "flower"): "at least 5 rounds",
    ("advise", FOLDERS / "compare", "--selector", "oort"): "selector must be one of",
    ("replay", "log.csv", "--selectors", ","): "selectors must name at least one",
    ("replay", "log.csv", "--selectors", "fedcs"): "got 'fedcs', which needs known rates",
    ("replay", "bare.csv"): "with which probability",
    ("replay", FOLDERS / "flower"): "at least 20 rounds",
}


@pytest.mark.parametrize("arguments", REFUSED, ids=lambda words: " ".join(map(str, words[:4])))
def test_mistakes_end_with_one_line(fedcohort, tmp_path, arguments):
    write_log(tmp_path / "log.csv")
    write_log(tmp_path / "bare.csv", inclusion=False)
    code, out, err = fedcohort(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert REFUSED[arguments] in err


def test_selectors_are_replayed_with_three_estimates(fedcohort, tmp_path):
    path = write_log(tmp_path / "log.csv", rounds=120)
    code, out, err = fedcohort("replay", path, "--selectors", "random,e3cs-0.5")
    assert (code, err) == (0, "")
    assert "robust" in out
    assert "e3cs-0.5" in out

    said = json.loads(fedcohort("replay", path, "--selectors", "random", "--json")[1])
    (row,) = said["rows"]
    assert row["inverse"]["value"] == pytest.approx(said["recorded"])
    assert row["refusal"] == ""


def test_a_replay_that_says_too_little_is_refused_with_the_bound(fedcohort, tmp_path):
    path = write_log(tmp_path / "log.csv", rounds=22)
    code, out, _ = fedcohort("replay", path, "--selectors", "e3cs-0")
    assert code == 0
    assert "e3cs-0 cannot be replayed: the effective sample size must be at least 100" in out
