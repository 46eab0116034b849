from itertools import islice

import numpy as np
import pytest

from fedcohort.world.intervals import Intervals, read_intervals, resample, write_intervals
from fedcohort.world.registry import Conditions, make_world

HEADER = "client,on,off\n"


@pytest.fixture
def write(tmp_path):
    """Return a function that writes a file with a header and returns its path."""

    def make(text, header=HEADER):
        path = tmp_path / "trace.csv"
        path.write_text(header + text)
        return path

    return make


def make_intervals(*rows):
    client, on, off = zip(*rows, strict=True)
    return Intervals(np.array(client), np.array(on, dtype=float), np.array(off, dtype=float))


def test_lines_are_read_in_any_order(write):
    intervals = read_intervals(write("2, 10, 20.5\n0,5,7\n2,0,10\n\n"))
    assert intervals.client.tolist() == [0, 2, 2]
    assert intervals.on.tolist() == [5.0, 0.0, 10.0]
    assert intervals.off.tolist() == [7.0, 10.0, 20.5]


def test_what_is_written_is_read_back_exactly(tmp_path):
    rng = np.random.default_rng(0)
    times = np.cumsum(rng.exponential(1000.0, size=200)) * np.pi
    client = np.repeat(np.arange(10), 10)
    intervals = Intervals(client, times[::2], times[1::2])
    write_intervals(tmp_path / "trace.csv", intervals)
    back = read_intervals(tmp_path / "trace.csv")
    for name in ("client", "on", "off"):
        np.testing.assert_array_equal(getattr(back, name), getattr(intervals, name))
    assert (tmp_path / "trace.csv").read_text().startswith(HEADER)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0,1,2\n1,2\n", r"line 3: must have 3 columns, client,on,off, got 2"),
        ("0,1,2\n\n1,2,3\n", r"line 3: must have 3 columns, client,on,off, got 1"),
        ("x,1,2\n", r"line 2, column 1 \(client\): must be a whole number of at least 0, got 'x'"),
        ("-1,1,2\n", r"line 2, column 1 \(client\): must be .* got '-1'"),
        ("1.0,1,2\n", r"line 2, column 1 \(client\): must be .* got '1.0'"),
        ("0,1,2\n1,a,2\n", r"line 3, column 2 \(on\): must be seconds of at least 0, got 'a'"),
        ("0,-1,2\n", r"line 2, column 2 \(on\): must be seconds of at least 0, got '-1'"),
        ("0,1,inf\n", r"line 2, column 3 \(off\): must be seconds of at least 0, got 'inf'"),
        ("0,nan,2\n", r"line 2, column 2 \(on\): must be seconds of at least 0, got 'nan'"),
        ("0,1_0,20\n", r"line 2, column 2 \(on\): must be seconds of at least 0, got '1_0'"),
        ("0,1,2_0\n", r"line 2, column 3 \(off\): must be seconds of at least 0, got '2_0'"),
        ("1_0,1,2\n", r"line 2, column 1 \(client\): must be .* got '1_0'"),
        ("0,2,2\n", r"line 2, column 3 \(off\): must be above on, 2, got 2"),
        ("0,5,9\n1,5,9\n0,1,6\n", r"line 2, column 2 \(on\): must be at least 6, where line 4 of"),
        ("", r"must have at least one line below its header, got none"),
    ],
)
def test_a_damaged_file_is_refused_with_line_and_column(write, text, message):
    path = write(text)
    with pytest.raises(ValueError, match=message) as caught:
        read_intervals(path)
    assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize("header", ["", "client,off,on\n", "0,1,2\n"])
def test_a_file_without_the_header_is_refused(write, header):
    with pytest.raises(ValueError, match=r"line 1: must be client,on,off, got '0,1,2'|off,on'"):
        read_intervals(write("0,1,2\n", header))


def test_an_empty_file_and_a_stranger_are_refused(write):
    with pytest.raises(ValueError, match=r"must have at least one line, a header, got an empty"):
        read_intervals(write("", header=""))
    with pytest.raises(ValueError, match=r"column 1 \(client\): .* from 0 to 2, got '3'"):
        read_intervals(write("3,1,2\n"), num_clients=3)


def test_rounds_are_worked_out_by_hand():
    intervals = make_intervals(
        (0, 0, 40),  # all four rounds
        (1, 1, 40),  # not when the first begins
        (2, 10, 29),  # leaves during the third
        (3, 11, 19),  # between two beginnings
        (4, 0, 15),  # touches the next one, so it stays
        (4, 15, 20),
        (6, 20, 30),
    )
    online, stays = resample(intervals, num_clients=7, round_seconds=10)
    assert online.astype(int).T.tolist() == [
        [1, 1, 1, 1],
        [0, 1, 1, 1],
        [0, 1, 1, 0],
        [0, 0, 0, 0],
        [1, 1, 0, 0],
        [0, 0, 0, 0],
        [0, 0, 1, 0],
    ]
    gone = online & ~stays
    assert np.argwhere(gone).tolist() == [[2, 2]]  # client 2 leaves during round 2


@pytest.mark.parametrize("length", [0.1, 0.3, 1 / 3, 0.7, 7.0])
def test_times_on_the_border_of_a_round_have_no_rounding_errors(length):
    for first in range(1, 60):
        for last in (first + 1, first + 7):
            intervals = make_intervals((0, first * length, last * length))
            online, stays = resample(intervals, 1, length)
            assert len(online) == last
            assert np.flatnonzero(online[:, 0]).tolist() == list(range(first, last))
            # (t + 1) L is where round t ends
            np.testing.assert_array_equal(stays, online)


def test_a_resampled_trace_agrees_with_a_look_at_every_interval():
    rng = np.random.default_rng(3)
    rows = []
    for client in range(5):
        times = np.sort(rng.uniform(0, 500, size=12))
        rows += [(client, times[i], times[i + 1]) for i in range(0, 12, 2)]
    online, stays = resample(make_intervals(*rows), 5, 13.0)
    for round, client in np.ndindex(online.shape):
        begin, end = round * 13.0, (round + 1) * 13.0
        own = [(on, off) for who, on, off in rows if who == client]
        assert online[round, client] == any(on <= begin < off for on, off in own)
        assert stays[round, client] == any(on <= begin and end <= off for on, off in own)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("last", "length"), [(1e20, 60.0), (1e308, 1e-6), (5e9, 1.0)])
def test_a_trace_of_more_rounds_than_can_be_counted_is_refused(last, length):
    words = rf"round_seconds must be at least .* at most 2147483647 rounds, got {length:g}"
    with pytest.raises(ValueError, match=words):
        resample(make_intervals((0, 0, last)), 1, length)


def test_rounds_longer_than_the_trace_are_refused():
    with pytest.raises(ValueError, match=r"round_seconds must be at most 30, .* got 31"):
        resample(make_intervals((0, 0, 30)), 1, 31)
    with pytest.raises(ValueError, match="num_clients must be a whole number at least 3"):
        resample(make_intervals((2, 0, 30)), 2, 10)


def test_the_world_plays_the_trace_for_every_seed(write, take):
    path = write("0,0,40\n1,5,25\n")
    settings = {"num_clients": 2, "seeds": [4, 9], "file": path, "knows_offline": True}
    world = make_world("trace", Conditions(**settings, options={"round_seconds": 10.0}))
    pairs = list(islice(zip(world.rows, world.available, strict=False), 10))
    answers = np.stack([row for row, _ in pairs]).astype(int)
    online = np.stack([present for _, present in pairs]).astype(int)
    assert online[:, 0].tolist() == [[1, 0], [1, 1], [1, 1], [1, 0]]
    assert answers[:, 0].tolist() == [[1, 0], [1, 1], [1, 0], [1, 0]]
    np.testing.assert_array_equal(answers[:, 0], answers[:, 1])
    assert world.success_rates.tolist() == [1.0, 0.25]
    assert world.num_rounds == 4
    with pytest.raises(ValueError, match="rounds must be at most 4"):
        world.check_rounds(5)


def test_whoever_stays_may_fail_nevertheless(write, take):
    path = write("0,0,2000\n")
    options = {"round_seconds": 1.0, "failure": 0.25}
    world = make_world("trace", Conditions(1, [4], file=path, options=options))
    assert world.success_rates.tolist() == [0.75]
    share = take(world.rows, 2000).mean()
    assert abs(share - 0.75) <= 5 * np.sqrt(0.75 * 0.25 / 2000)


def test_a_trace_without_a_file_is_refused():
    with pytest.raises(ValueError, match="world_file must be given for the world 'trace'"):
        make_world("trace", Conditions(2, [0]))
