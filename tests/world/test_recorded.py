import numpy as np
import pytest

from fedcohort import Random, play
from fedcohort.world.recorded import replay
from fedcohort.world.registry import Conditions, make_world


def test_a_recorded_world_is_replayed_and_ends():
    table = np.array([[1, 0], [0, 0], [1, 1]], dtype=bool)
    for given in (table, table.astype(int), table.tolist()):
        rows = np.stack(list(replay(given)))
        np.testing.assert_array_equal(rows, table)
        assert rows.dtype == bool


def test_recorded_seconds_stay_seconds():
    table = np.array([[3.0, np.inf], [0.0, 2.5]])
    np.testing.assert_array_equal(np.stack(list(replay(table))), table)


@pytest.mark.parametrize("table", [[[1, 2]], [["a"]], [[1.0, np.nan]], [[-1.0]], [True, False]])
def test_a_recorded_world_that_cannot_be_read_is_refused(table):
    with pytest.raises(ValueError, match=r"table must be rows \[T, K\]"):
        replay(table)


def recorded(path, text, num_clients, seeds=(0,)):
    path.write_text(text)
    return make_world("recorded", Conditions(num_clients, seeds, file=path))


def test_every_seed_meets_the_rows_of_the_file(tmp_path):
    world = recorded(tmp_path / "rounds.csv", "1,0,1\n0,0,1\n", 3, seeds=(4, 9))
    rows = np.stack(list(world.rows))
    assert rows.dtype == bool
    assert rows.tolist() == [[[1, 0, 1]] * 2, [[0, 0, 1]] * 2]


def test_the_success_rate_is_the_share_of_recorded_rounds_with_an_answer(tmp_path):
    answers = recorded(tmp_path / "answers.csv", "1,0,1\n0,0,1\n", 3)
    assert answers.success_rates.tolist() == [0.5, 0.0, 1.0]
    assert not answers.has_seconds
    seconds = recorded(tmp_path / "seconds.csv", "2.5,inf,0\ninf,inf,900\n", 3)
    assert seconds.success_rates.tolist() == [0.5, 0.0, 1.0]
    assert seconds.has_seconds


def test_an_answer_after_the_deadline_is_no_success(tmp_path):
    path = tmp_path / "seconds.csv"
    path.write_text("2.5,inf,50,10\n12,inf,50,10.5\n")
    world = make_world("recorded", Conditions(4, [0], file=path, deadline=10.0))
    assert world.success_rates.tolist() == [0.5, 0.0, 0.0, 0.5]
    path.write_text("1,0,1,0\n1,1,1,0\n")  # answers have no times
    world = make_world("recorded", Conditions(4, [0], file=path, deadline=0.5))
    assert world.success_rates.tolist() == [1.0, 0.5, 1.0, 0.0]


def test_a_recorded_world_plays_as_its_table_does(tmp_path):
    table = np.random.default_rng(0).random((30, 6)) < 0.5
    path = tmp_path / "rounds.npy"
    np.save(path, table)
    world = make_world("recorded", Conditions(6, [3], file=path))
    together = list(play(Random(6, 2, rng=[3]), world.rows, 30))
    alone = list(play(Random(6, 2, rng=3), replay(table), 30))
    for batch, single in zip(together, alone, strict=True):
        np.testing.assert_array_equal(batch.arrived[0], single.arrived)


def test_more_rounds_than_were_recorded_are_refused(tmp_path):
    world = recorded(tmp_path / "rounds.csv", "1,0\n0,1\n", 2)
    assert world.num_rounds == 2
    world.check_rounds(2)
    with pytest.raises(ValueError, match=r"rounds must be at most 2, .* 2 recorded rounds, got 3"):
        world.check_rounds(3)
    endless = make_world("bernoulli", Conditions(4, [0]))
    endless.check_rounds(10**9)


def test_a_file_of_other_clients_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"rounds\.csv must have 3 columns, .* got 2"):
        recorded(tmp_path / "rounds.csv", "1,0\n0,1\n", 3)


def test_a_recorded_world_without_a_file_is_refused():
    with pytest.raises(ValueError, match="file must be given for the world 'recorded', got None"):
        make_world("recorded", Conditions(3, [0]))
