"""Values of flags that used to end in a traceback, to hang, or to take all memory."""

import os
import shutil
from pathlib import Path

import pytest

FOLDERS = Path(__file__).parents[1] / "compatibility" / "folders"

TINY = (
    "compare", "--out", "run", "--selectors", "random", "--partitions", "iid", "--aggregations",
    "paper", "--seeds", "1", "--clients", "4", "--cohort", "2", "--rounds", "1",
    "--rates", "0.9", "--targets", "0.5",
)  # fmt: skip
ENDLESS = ("/dev/zero", "/dev/full")
NOT_UTF8 = os.fsdecode(b"bad-\xff\xfe")


def refused(result, *words):
    """Require exit code 2 and one line that holds these words."""
    code, output, errors = result
    assert code == 2, errors
    assert output == ""
    assert errors.startswith("error: ")
    assert errors.count("\n") == 1
    for word in words:
        assert word in errors


@pytest.mark.parametrize(
    ("flag", "value"),
    [("rounds", "1_0"), ("rounds", "\u0663"), ("rates", "0_1"), ("eta", "0.\u0665")],
)
def test_python_alone_reads_these_as_numbers(fedcohort, flag, value):
    refused(fedcohort(*TINY, f"--{flag}", value), f"{flag} must be ")


@pytest.mark.parametrize("mu", ["0", "2"])
def test_a_whole_number_is_a_coefficient_of_fedprox(fedcohort, mu):
    code, _, errors = fedcohort(*TINY, "--mus", mu, "--mode", "together")
    assert code == 0, errors


def test_huge_numbers_of_seconds_and_rates_do_not_overflow(fedcohort):
    huge = "9223372036854775808"
    given = ("--seconds-per-epoch", huge, "--deadline", huge, "--server-rate", "1" + "0" * 300)
    code, _, errors = fedcohort(*TINY, *given)
    assert code == 0, errors


@pytest.mark.parametrize(
    ("name", "value"),
    [("--slots", 2**31 - 1), ("--epochs", 2**31 - 1), ("--batch-size", 2**31 - 1),
     ("--seeds", 2**31 - 1)],
)  # fmt: skip
def test_a_training_that_fits_no_memory_is_refused_before_it_begins(fedcohort, name, value):
    result = fedcohort(*TINY, "--mode", "together", name, value)
    refused(result, name[2:].replace("-", "_"), "bytes", str(value))


@pytest.mark.parametrize(
    ("name", "value"), [("--seeds", 2**31 - 1), ("--rounds", 2**31 - 1), ("--clients", 2**31 - 1)]
)
def test_a_simulation_that_fits_no_memory_is_refused_before_it_begins(fedcohort, name, value):
    result = fedcohort("simulate", "--out", "run", name, value)
    refused(result, "clients", "seeds", "rounds", "bytes", str(value))
    assert not os.path.exists("run")


@pytest.mark.parametrize("path", ENDLESS)
@pytest.mark.parametrize("command", ["compare", "simulate", "dataset"])
def test_a_device_is_no_file(fedcohort, command, path):
    given = {
        "compare": ("compare", "--config", path),
        "simulate": ("simulate", "--world", "recorded", "--world-file", path),
        "dataset": (*TINY, "--dataset", "endless.npz"),
    }
    os.symlink(path, "endless.npz")
    refused(fedcohort(*given[command]), "must be a file")


@pytest.mark.parametrize("command", ["compare", "simulate", "dataset"])
def test_a_pipe_without_a_writer_is_no_file(fedcohort, command):
    given = {
        "compare": ("compare", "--config", "pipe.npz"),
        "simulate": ("simulate", "--world", "recorded", "--world-file", "pipe.npz"),
        "dataset": (*TINY, "--dataset", "pipe.npz"),
    }
    os.mkfifo("pipe.npz")
    refused(fedcohort(*given[command]), "pipe.npz must be a file")


@pytest.mark.parametrize("name", ["settings.toml", "owners.npz", "environment.json"])
def test_a_pipe_in_a_run_folder_is_no_file(fedcohort, name):
    shutil.copytree(FOLDERS / "compare", "run")
    os.remove(f"run/{name}")
    os.mkfifo(f"run/{name}")
    refused(fedcohort("report", "run"), name, "must be a file")


@pytest.mark.parametrize(
    "arguments",
    [
        ("compare", "--config", NOT_UTF8),
        ("compare", "--dataset", f"{NOT_UTF8}.npz"),
        ("compare", "--world", "recorded", "--world-file", NOT_UTF8),
        ("simulate", "--world", "recorded", "--world-file", NOT_UTF8),
        ("report", NOT_UTF8),
        ("watch", NOT_UTF8),
        ("reproduce", "figure3", "--from", NOT_UTF8),
        ("reproduce", NOT_UTF8),
    ],
)
def test_a_path_that_is_not_utf8_is_named_in_the_message(fedcohort, arguments):
    refused(fedcohort(*arguments), "bad-\\udcff\\udcfe")


@pytest.mark.parametrize("given", [(), ("--json",)])
def test_a_folder_whose_name_is_not_utf8_holds_a_simulation(fedcohort, given):
    sizes = ("--clients", "4", "--cohort", "2", "--rounds", "3", "--seeds", "1")
    code, output, errors = fedcohort("simulate", *sizes, "--out", NOT_UTF8, *given)
    assert code == 0, errors
    assert "bad-\\udcff\\udcfe" in output


@pytest.mark.parametrize("command", ["simulate", "compare"])
def test_a_recorded_world_asks_for_its_file_by_the_flag(fedcohort, command):
    refused(fedcohort(command, "--world", "recorded"), "--world-file")


def test_a_zero_byte_in_a_name_is_refused_by_the_name_of_its_setting(fedcohort):
    with open("settings.toml", "w") as file:
        file.write('dataset = "a\\u0000.npz"\n')
    refused(fedcohort("compare", "--config", "settings.toml"), "dataset")


def test_control_characters_of_a_path_are_escaped_so_that_the_message_is_one_line(fedcohort):
    refused(fedcohort("report", "a\nb\x1b[31m"), "a\\nb\\x1b[31m")


def test_a_number_with_too_many_digits_is_refused_by_the_name_of_its_setting(fedcohort):
    with open("settings.toml", "w") as file:
        file.write(f"seeds = 0x{'f' * 5000}\n")
    refused(fedcohort("compare", "--config", "settings.toml"), "seeds", "20000 bits")
