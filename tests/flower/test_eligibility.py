"""Clients that may not be asked are away, not failed."""

import numpy as np
import pytest
from fakes import FakeClient, federation, learner, record
from flwr.app import ConfigRecord, RecordDict
from helpers import asked_by_round, cohort_strategy, initial, journal

from fedcohort.flower import ClientInfo, client_app
from fedcohort.flower.client import answer_identity
from fedcohort.flower.eligibility import Eligibility
from fedcohort.flower.node_answers import properties_in


def with_properties(client, **properties):
    """Let a fake client tell its properties when it is asked for its name."""

    class Telling(FakeClient):
        def answer(self, message):
            delay, said = super().answer(message)
            if message.metadata.message_type.startswith("query"):
                said["properties"] = ConfigRecord(properties)
            return delay, said

    return Telling(client.says, client.train, client.evaluate)


def played(grid, **options):
    strategy = cohort_strategy(cohort_size=2, **options)
    strategy.start(grid, initial(), num_rounds=6)
    return strategy, {node for nodes in asked_by_round(grid).values() for node in nodes}


def test_only_the_named_are_asked_and_others_take_no_index(clock):
    strategy, nodes = played(federation(clock, 6), eligible=["1", "4", "nobody"])
    assert nodes == {101, 104}
    assert [client.name for client in strategy.registry.known] == ["1", "4"]
    assert strategy.selector.num_clients == 2
    assert strategy.training.totals.sent == strategy.training.totals.arrived == 12


def test_a_star_stands_for_anything():
    eligibility = Eligibility(["clinic-*"])
    assert eligibility.admits(ClientInfo("clinic-7"))
    assert not eligibility.admits(ClientInfo("Clinic-7"))
    assert not eligibility.needs_properties


def test_properties_are_asked_for_and_must_have_their_values(clock):
    grid = federation(clock, 0)
    for number, region in enumerate(("eu", "us", "eu", "us")):
        grid.join(100 + number, with_properties(learner(number), region=region, gpu=number))
    _, nodes = played(grid, eligible={"region": "eu"})
    assert nodes == {100, 102}


def test_registered_nodes_are_asked_for_their_properties_too(clock):
    grid = federation(clock, 0)
    for number in range(4):
        telling = with_properties(learner(number), gpu=number % 2)
        grid.join(100 + number, telling, name=f"site-{number}")
    strategy, nodes = played(grid, eligible=lambda client: client.properties.get("gpu") == 1)
    assert nodes == {101, 103}
    assert [client.name for client in strategy.registry.known] == ["site-1", "site-3"]


def test_a_client_that_is_no_longer_eligible_is_away_and_keeps_its_weight(clock, tmp_path):
    allowed = {"0", "1", "2"}
    grid = federation(clock, 3)
    strategy = cohort_strategy(
        selector="e3cs-0.5",
        cohort_size=2,
        folder=tmp_path,
        eligible=lambda client: client.name in allowed,
    )
    weights = []

    def change(round, arrays):
        weights.append(strategy.selector.log_weights[2])
        if round == 3:
            allowed.discard("2")
        if round == 6:
            allowed.add("2")

    strategy.start(grid, initial(), num_rounds=9, evaluate_fn=change)
    rows = journal(tmp_path)
    chances = [row["probabilities"]["2"] for row in rows]
    assert all(chance > 0 for chance in (*chances[:3], *chances[7:]))
    assert chances[4:6] == [0.0, 0.0]
    assert weights[4] == weights[6], "it lost nothing while it was away"
    assert {asked["status"] for row in rows for asked in row["asked"]} == {"arrived"}


def test_a_function_that_fails_on_what_a_client_tells_leaves_that_client_out(clock, logged):
    grid = federation(clock, 0)
    for number, memory in enumerate(("16", "lots", "32")):
        grid.join(100 + number, with_properties(learner(number), memory=memory))
    _, nodes = played(grid, eligible=lambda client: int(client.properties["memory"]) >= 16)
    assert nodes == {100, 102}
    warnings = [line for line in logged if "eligible fails" in line]
    assert len(warnings) == 1
    assert "client 1 is not asked: eligible fails: ValueError" in warnings[0]


def test_too_few_that_may_be_asked_are_an_error_that_ends_the_wait(clock):
    with pytest.raises(ValueError, match="cohort_size must be at most 1, as many clients"):
        cohort_strategy(cohort_size=2, eligible=["3"]).start(federation(clock, 5), initial())


def test_nobody_who_may_be_asked_is_not_blamed_on_the_wait(clock):
    strategy = cohort_strategy(cohort_size=2, eligible=["nobody"])
    with pytest.raises(ValueError, match="eligible must admit a client, got none of the 5 that"):
        strategy.start(federation(clock, 5), initial())


@pytest.mark.parametrize(
    ("properties", "is_admitted"),
    [
        ({"region": "eu"}, True),
        ({"region": "us"}, True),
        ({"region": "cn"}, False),
        ({"region": ["eu"]}, False),
        ({}, False),
    ],
)
def test_a_property_may_have_one_of_several_values(properties, is_admitted):
    for values in (["eu", "us"], ("eu", "us"), {"eu", "us"}):
        assert Eligibility({"region": values}).admits(ClientInfo("a", properties)) == is_admitted


@pytest.mark.parametrize(
    "wrong",
    ["a", [], {}, 3, [1, 2], {1: "a"}, {"region": None}, {"gpu": np.ones(2)}, {"gpu": []}],
)
def test_what_is_neither_is_refused(wrong):
    with pytest.raises(ValueError, match="eligible must be names of clients, properties of nodes"):
        cohort_strategy(eligible=wrong)


def test_a_client_tells_only_the_properties_that_it_was_told_to():
    from fakes import context, message

    where = context(**{"client-id": "a", "region": "eu", "password": "secret"})
    answer = answer_identity(message(kind="query"), where, properties=("region", "absent"))
    assert dict(answer.content.config_records["properties"]) == {"region": "eu"}
    silent = answer_identity(message(kind="query"), where)
    assert dict(silent.content.config_records["properties"]) == {}
    assert client_app(properties=["region"]) is not None


def test_strange_properties_are_not_kept():
    def told(**values):
        return properties_in(RecordDict({"properties": ConfigRecord(values)}))

    assert told(a="eu", b=1, c=0.5, d=True) == {"a": "eu", "b": 1, "c": 0.5, "d": True}
    assert told(a="x" * 201, b="\x1b[31m", c=[1, 2], d=b"bytes", **{"e" * 201: 1}) == {}
    assert told(**{f"key-{number}": number for number in range(101)}) == {}
    assert properties_in(RecordDict()) == {}
    assert properties_in(RecordDict({"properties": record(w=np.ones(1))})) == {}
