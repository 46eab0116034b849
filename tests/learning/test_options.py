import pytest
import torch

from fedcohort.learning.options import Options, find_device

from .small import make_engine


@pytest.mark.parametrize(
    "options", [{"slots": 0}, {"slots": -1}, {"max_norm": -1.0}, {"max_norm": float("nan")}]
)
def test_options_out_of_bounds_are_refused_by_name(options):
    with pytest.raises(ValueError, match=f"{next(iter(options))} must be .*, got"):
        Options(**options)


@pytest.mark.parametrize(("option", "value"), [("mode", "both"), ("precision", "float16")])
def test_an_unknown_option_is_refused_with_those_there_are(option, value):
    with pytest.raises(ValueError, match=f"{option} must be one of .*, got '{value}'"):
        make_engine(**{option: value})


@pytest.mark.skipif(
    torch.cuda.is_available(), reason="asks for a GPU where there is none, and this machine has one"
)
def test_a_device_that_is_not_there_is_refused_by_name():
    with pytest.raises(ValueError, match=r"device must be .*, got 'cuda'"):
        make_engine(device="cuda")


@pytest.mark.parametrize("name", ["quantum", "cpu:x", ""])
def test_a_device_that_does_not_exist_is_refused_by_name(name):
    with pytest.raises(ValueError, match=f"device must be .*, got '{name}'"):
        make_engine(device=name)


def test_auto_finds_a_device_that_works():
    device = find_device("auto")
    assert device.type == ("cuda" if torch.cuda.is_available() else "cpu")


def test_a_device_that_fails_without_a_word_is_refused_with_the_kind_of_its_error(monkeypatch):
    def fail(*args, **kwargs):
        raise AssertionError

    monkeypatch.setattr(torch, "zeros", fail)
    with pytest.raises(ValueError, match=r"device must be .*, got 'cpu': AssertionError$"):
        find_device("cpu")
