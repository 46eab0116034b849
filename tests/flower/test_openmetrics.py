"""Numbers of a run over HTTP, read with the parser of the real library."""

import socket
from urllib.request import Request, urlopen

import pytest
from fakes import federation
from helpers import cohort_strategy, initial

from fedcohort.flower import openmetrics
from fedcohort.flower.openmetrics import RunMetrics

parser = pytest.importorskip("prometheus_client.openmetrics.parser")


def asked(client, status="arrived", seconds=3.0):
    return {"client": client, "status": status, "seconds": seconds}


def row(number, *clients, **more):
    return {"round": number, "seconds": 7.0, "success_ratio": 0.5, "asked": list(clients), **more}


def served(metrics):
    """Return the values that are served as OpenMetrics text, by name and labels."""
    accept = {"Accept": "application/openmetrics-text; version=1.0.0"}
    with urlopen(Request(f"http://127.0.0.1:{metrics.port}/metrics", headers=accept)) as answer:
        assert answer.headers["Content-Type"].startswith("application/openmetrics-text")
        text = answer.read().decode()
    values = {}
    for family in parser.text_string_to_metric_families(text):
        for sample in family.samples:
            values[sample.name, *sample.labels.values()] = sample.value
    return values


@pytest.fixture
def metrics():
    serving = RunMetrics(0)
    yield serving
    serving.close()


def test_rounds_arrivals_failures_and_times_are_served(metrics):
    metrics.count(row(1, asked("a"), asked("b", "lost", None), asked("c", "unneeded", None)))
    metrics.count(row(2, asked("a", seconds=40.0), asked("b", "rejected", None), deadline=20.0))
    found = served(metrics)
    assert found["fedcohort_rounds_total",] == 2
    assert found["fedcohort_round",] == 2
    assert found["fedcohort_asked_total",] == 5
    assert found["fedcohort_arrivals_total",] == 2
    assert found["fedcohort_unneeded_total",] == 1
    assert found["fedcohort_failures_total", "lost"] == 1
    assert found["fedcohort_failures_total", "rejected"] == 1
    assert found["fedcohort_deadline_seconds",] == 20.0
    assert found["fedcohort_success_ratio",] == 0.5
    assert found["fedcohort_round_seconds_sum",] == 14.0
    assert found["fedcohort_answer_seconds_bucket", "5.0"] == 1
    assert found["fedcohort_answer_seconds_count",] == 2
    assert found["fedcohort_client_asked_total", "a"] == 2
    assert found["fedcohort_client_arrivals_total", "a"] == 2
    assert found["fedcohort_client_arrivals_total", "b"] == 0


def test_only_so_many_clients_have_series(metrics, monkeypatch):
    monkeypatch.setattr(openmetrics, "MOST_CLIENTS", 3)
    for number in range(4):
        metrics.count(row(number + 1, *(asked(f'odd "name" {n}') for n in range(10))))
    found = served(metrics)
    series = [key for key in found if key[0] == "fedcohort_client_asked_total"]
    assert len(series) == 3
    assert found["fedcohort_client_asked_total", 'odd "name" 0'] == 4
    assert found["fedcohort_clients_without_series",] == 7
    assert found["fedcohort_arrivals_total",] == 40


def test_a_taken_port_is_one_warning_and_the_run_goes_on(clock, logged):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        strategy = cohort_strategy(metrics_port=port)
        strategy.start(federation(clock, 4), initial(), num_rounds=2)
    assert strategy.training.totals.arrived == 6
    warnings = [line for line in logged if "metrics_port" in line]
    assert len(warnings) == 1
    assert (
        f"metrics_host and metrics_port must be a free address, got 127.0.0.1:{port}" in warnings[0]
    )


def test_a_run_serves_its_rounds_the_resumed_ones_too_and_stops_at_its_end(clock, tmp_path):
    found = []
    ports = []

    def look(round, arrays):
        observers = strategy.training.on_row.__self__
        ports.append(observers.metrics.port)
        found.append(served(observers.metrics))

    options = {"folder": tmp_path, "metrics_port": 0}
    strategy = cohort_strategy(**options)
    strategy.start(federation(clock, 4), initial(), num_rounds=2, evaluate_fn=look)
    strategy = cohort_strategy(resume=True, **options)
    strategy.start(federation(clock, 4), initial(), num_rounds=3, evaluate_fn=look)
    assert [values["fedcohort_rounds_total",] for values in found] == [0, 1, 2, 2, 3]
    assert found[-1]["fedcohort_arrivals_total",] == 9
    assert found[-1]["fedcohort_deadline_seconds",] == 5.0
    for port in ports:
        with socket.socket() as probe:
            assert probe.connect_ex(("127.0.0.1", port)) != 0, "nobody listens any more"


@pytest.mark.parametrize("port", [-1, 65536, "9090", 1.5])
def test_a_port_is_a_port(port):
    with pytest.raises(ValueError, match="metrics_port must be a whole number between 0 and 65535"):
        cohort_strategy(metrics_port=port)


def test_without_the_library_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(openmetrics, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"pip install 'fedcohort\[prometheus\]'"):
        cohort_strategy(metrics_port=0)
