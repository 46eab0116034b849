from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from fedcohort.world.options import MissingData
from fedcohort.world.registry import WORLDS, Conditions, make_world

ON_AND_OFF = ("markov", "groups", "cyclic", "diurnal", "trace")
NEED_DATA = ("labels", "devices")


@pytest.fixture
def make_conditions(tmp_path):
    """Return a function from seeds to conditions that every registered world can be made from."""
    rounds = tmp_path / "rounds.csv"
    rounds.write_text("1,0,1,1\n" * 20)
    intervals = tmp_path / "intervals.csv"
    intervals.write_text("client,on,off\n0,0,1200\n1,100,700\n2,61,62\n1,900,1000\n")

    def make(name, *seeds, **changed):
        counts = [[[5, 0, 0], [0, seed, 1], [1, 2, 3], [0, 0, 9]] for seed in seeds]
        settings = {
            "num_clients": 4,
            "seeds": list(seeds),
            "file": intervals if name == "trace" else rounds,
            "label_counts": np.array(counts),
            "data_sizes": np.array([[5, 6, 6, 9]] * len(seeds)),
            "epochs": np.array([[1, 2, 3, 4]] * len(seeds)),
            "model_bytes": 1000,
            "deadline": 10.0,
            "rounds": 20,
        }
        return Conditions(**(settings | changed))

    return make


@pytest.mark.parametrize("name", WORLDS)
def test_every_world_yields_one_row_per_seed_and_a_rate_per_client(name, make_conditions, take):
    world = make_world(name, make_conditions(name, 5, 6))
    assert take(world.rows, 20).shape == (20, 2, 4)
    assert world.success_rates.shape in ((4,), (2, 4))
    assert ((world.success_rates >= 0) & (world.success_rates <= 1)).all()


@pytest.mark.parametrize("name", WORLDS)
def test_the_same_conditions_make_the_same_world(name, make_conditions, take):
    first = take(make_world(name, make_conditions(name, 5, 6)).rows, 20)
    second = take(make_world(name, make_conditions(name, 5, 6)).rows, 20)
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize(
    ("name", "knows_offline"),
    [*((name, False) for name in WORLDS), *((name, True) for name in ON_AND_OFF)],
)
def test_seeds_that_are_played_together_are_the_seeds_alone(
    name, knows_offline, make_conditions, take
):
    known = {"knows_offline": knows_offline}
    together = make_world(name, make_conditions(name, 5, 6, 5, **known))
    rows = take(together.rows, 20)
    online = take(together.available, 20) if knows_offline else None
    rates = np.broadcast_to(together.success_rates, (3, 4))
    for position, seed in enumerate((5, 6, 5)):
        alone = make_world(name, make_conditions(name, seed, **known))
        np.testing.assert_array_equal(rows[:, position], take(alone.rows, 20)[:, 0])
        own_rates = np.broadcast_to(alone.success_rates, (1, 4))
        np.testing.assert_array_equal(rates[position], own_rates[0])
        if knows_offline:
            np.testing.assert_array_equal(online[:, position], take(alone.available, 20)[:, 0])


@pytest.mark.parametrize("name", WORLDS)
def test_a_world_says_by_its_dtype_whether_it_has_seconds(name, make_conditions):
    world = make_world(name, make_conditions(name, 5, 6))
    assert (next(world.rows).dtype != np.bool_) == world.has_seconds


@pytest.mark.parametrize("name", ON_AND_OFF)
def test_whoever_is_known_to_be_offline_does_not_answer_and_the_rows_stay(
    name, make_conditions, take
):
    known = make_world(name, make_conditions(name, 5, 6, knows_offline=True))
    unknown = make_world(name, make_conditions(name, 5, 6))
    assert unknown.available is None
    pairs = list(islice(zip(known.rows, known.available, strict=False), 20))
    rows = np.stack([row for row, _ in pairs])
    online = np.stack([present for _, present in pairs])
    np.testing.assert_array_equal(rows, take(unknown.rows, 20))
    assert not (rows & ~online).any()
    assert (~online).any()


@pytest.mark.parametrize("name", [name for name in WORLDS if name not in ON_AND_OFF])
def test_a_world_without_off_times_knows_nobody_to_be_offline(name, make_conditions):
    message = f"knows_offline must be false in the world '{name}'"
    with pytest.raises(ValueError, match=message):
        make_world(name, make_conditions(name, 5, knows_offline=True))


@pytest.mark.parametrize("name", WORLDS)
def test_an_unknown_option_is_refused_by_name(name, make_conditions):
    message = f"world '{name}' must .*(be one of|because it has none).* got '?sycle"
    with pytest.raises(ValueError, match=message):
        make_world(name, make_conditions(name, 5, options={"sycle": 3.0}))


@pytest.mark.parametrize("name", NEED_DATA)
def test_a_world_that_needs_the_clients_data_says_so(name):
    with pytest.raises(MissingData, match=f"world '{name}' must know .*, got none; `compare`"):
        make_world(name, Conditions(4, [0], rounds=20))


def test_an_unknown_world_gets_the_nearest_name():
    with pytest.raises(ValueError, match=r"world must be one of .* did you mean 'bernoulli'"):
        make_world("bernouli", Conditions(4, [0]))


@pytest.mark.parametrize("rounds", [0, -1, 2.5])
def test_a_number_of_rounds_is_at_least_one(rounds):
    with pytest.raises(ValueError, match=f"rounds must be a whole number at least 1, got {rounds}"):
        Conditions(4, [0], rounds=rounds)


def test_success_rates_of_a_world_of_ones_own_may_be_a_list(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [
        "from fedcohort.world.base import World",
        "def halves(conditions):",
        "    return World(iter([[[True, False]]]), success_rates=[0.25, 0.5])",
    ]
    Path("own.py").write_text("\n".join(lines))
    world = make_world("own.py:halves", Conditions(2, [0]))
    np.testing.assert_array_equal(world.success_rates, np.array([0.25, 0.5]), strict=True)
    assert next(world.lasting("halves", 1).rows) == [[True, False]]
