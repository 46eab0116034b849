import numpy as np
import pytest

from fedcohort.advice.advisor import Options, advise
from fedcohort.advice.csv_log import read_csv_log
from fedcohort.advice.deadline import advise_deadline
from fedcohort.advice.sources import read_log
from fedcohort.advice.text import sentences

HEADER = "round,client,asked,arrived,seconds,inclusion\n"


def write(tmp_path, text, header=HEADER):
    path = tmp_path / "log.csv"
    path.write_text(header + text)
    return path


def test_lines_may_stand_in_any_order_and_a_client_need_not_be_asked(tmp_path):
    path = write(tmp_path, "2,b,1,0,9,0.5\n1,a,1,1,2.5,0.25\n1,c,0,0,,\n")
    log = read_log(path, deadline=9.0)
    assert log.clients == ("a", "b", "c")
    assert log.rounds.tolist() == [1, 2]
    assert log.client.tolist() == [0, 1]
    assert log.seconds[0] == 2.5
    assert np.isnan(log.seconds[1])  # how long the server waited is no answer's time
    assert log.inclusion.tolist() == [0.25, 0.5]
    assert log.deadline == 9.0


def test_an_answer_after_the_deadline_counts_without_its_time(tmp_path):
    log = read_csv_log(write(tmp_path, "1,a,1,1,12,\n"), deadline=10.0)
    assert log.arrived.tolist() == [True]
    assert np.isnan(log.seconds).all()
    assert "1 answers took longer than the deadline of 10 s" in log.notes[0]


MISTAKES = {
    "-1,a,1,1,2,0.5\n": r"line 2, column 1 \(round\)",
    "1.5,a,1,1,2,0.5\n": r"line 2, column 1 \(round\)",
    "1731933211000,a,1,1,2,0.5\n": r"column 1 \(round\): .* between 0 and 2147483647, got '173",
    "1,,1,1,2,0.5\n": r"line 2, column 2 \(client\)",
    "1,a,yes,1,2,0.5\n": r"line 2, column 3 \(asked\)",
    "1,a,0,1,2,0.5\n": r"line 2, column 4 \(arrived\).*where asked is 0",
    "1,a,1,1,-2,0.5\n": r"line 2, column 5 \(seconds\)",
    "1_0,a,1,1,2,0.5\n": r"line 2, column 1 \(round\).*got '1_0'",
    "1,a,1,1,1_0,0.5\n": r"line 2, column 5 \(seconds\).*got '1_0'",
    "1,a,1,1,2,0.1_5\n": r"line 2, column 6 \(inclusion\).*got '0.1_5'",
    "1,a,1,1,nan,0.5\n": r"line 2, column 5 \(seconds\)",
    "1,a,1,1,1750000000,0.5\n": r"line 2, column 5 \(seconds\).*between 0 and 1e\+09",
    "1,a,1,1,2,1e-300\n": r"line 2, column 6 \(inclusion\)",
    "1,a,1,1,2,0\n": r"line 2, column 6 \(inclusion\)",
    "1,a,1,1,2,1.5\n": r"line 2, column 6 \(inclusion\)",
    "1,a,1,1,2,0.5\n1,a,1,0,,0.5\n": r"line 3: must name a client once.*line 2",
    "1,a,1,1\n": r"line 2: must have 6 columns",
    '1,"a,1,1,2,0.5\n2,b",1,1,2,0.5\n': "line 2: must close every quote",
    '1,a,1,1,2,0.5\n2,"a"b,1,1,2,0.5\n': "line 3: must close every quote",
    "1,a,0,0,,\n": "at least one round",
    "": "at least one round",
}


@pytest.mark.parametrize("text", MISTAKES)
def test_a_mistake_is_refused_by_line_and_column(tmp_path, text):
    with pytest.raises(ValueError, match=MISTAKES[text]):
        read_csv_log(write(tmp_path, text))


def test_only_a_newline_ends_a_line(tmp_path):
    names = ("a\u2028b", "c\x85d", "e\x0cf")
    log = read_csv_log(write(tmp_path, "".join(f"1,{name},1,1,2,\n" for name in names)))
    assert log.clients == names


def test_a_name_in_the_advice_cannot_command_a_terminal(tmp_path):
    lines = []
    for number in range(1, 31):
        lines.append(f"{number},\x1b[31mred,1,0,,\n{number},b,1,{number % 2},,\n")
    advice = advise(read_csv_log(write(tmp_path, "".join(lines))), Options(("random",), rounds=10))
    texts = [sentence.text for sentence in sentences(advice)]
    assert any("?[31mred (asked 30 times" in text for text in texts)
    assert all(text.isprintable() for text in texts)


def test_a_client_in_quotes_is_the_same_client(tmp_path):
    header = '"round","client","asked","arrived","seconds"\n'
    text = '1,"a",1,1,2\n2,a,1,1,"2"\n3, "a",1,1,2\n3,"b, ""the other""",1,1,2\n'
    log = read_log(write(tmp_path, text, header))
    assert log.clients == ("a", 'b, "the other"')
    assert log.client.tolist() == [0, 0, 0, 1]
    assert log.seconds.tolist() == [2, 2, 2, 2]


def test_a_file_of_something_else_is_refused(tmp_path):
    path = write(tmp_path, "", header="a,b\n1,2\n")
    with pytest.raises(ValueError, match=r"line 1: must be round,client.* or client,on,off"):
        read_log(path)


def test_a_trace_is_played_with_uniform_selection(tmp_path):
    path = write(tmp_path, "0,0,600\n1,0,300\n2,0,600\n3,0,600\n4,0,600\n", "client,on,off\n")
    log = read_log(path, cohort=5, round_seconds=60.0)
    assert log.num_rounds == 10
    assert log.arrived_of_client.tolist() == [10, 5, 10, 10, 10]
    assert log.selector == "random"
    assert "rounds of 60 s" in log.notes[0]
    with pytest.raises(ValueError, match=r"round_seconds must be a finite number above 0, got 0"):
        read_log(path, round_seconds=0.0)


def censored_lines(rng, *, rounds=120, median=40.0, deadline=40.0, waits=True):
    """Everyone answers, with a spread of 0.4; failures have the seconds that the server waited."""
    lines = []
    for round in range(1, rounds + 1):
        for client in range(6):
            seconds = median * np.exp(0.4 * rng.standard_normal())
            arrived = int(seconds <= deadline)
            time = f"{seconds:.2f}"
            if not arrived:
                time = f"{deadline:g}" if waits else ""
            lines.append(f"{round},c{client},1,{arrived},{time},\n")
    return "".join(lines)


def test_the_time_that_failures_share_is_the_deadline(tmp_path):
    """The median is 40 s and so is the deadline: half of the answers come in time.

    Of 720 answers that is known up to 5 points, three standard errors. Nobody knows who was late,
    so the model may be further off.
    """
    path = write(tmp_path, censored_lines(np.random.default_rng(0)))
    log = read_csv_log(path)
    assert log.deadline == 40.0
    assert "the server waited 40 s: that counts as the deadline" in log.notes[0]
    found = advise_deadline(log, block=5, rng=np.random.default_rng(0))
    assert not found.is_said or found.best > 40.0
    assert found.kept[found.nearest(40.0)] < 0.8


def test_failures_that_may_have_been_late_by_an_unknown_deadline_get_no_advice(tmp_path):
    path = write(tmp_path, censored_lines(np.random.default_rng(0), rounds=40, waits=False))
    log = read_csv_log(path)
    assert log.deadline is None
    assert advise_deadline(log, block=3, rng=np.random.default_rng(0)) is None
    advice = advise(log, Options(selectors=("random",), rounds=20))
    (sentence,) = [one for one in sentences(advice) if one.topic == "deadline"]
    assert not sentence.is_said
    assert "Give the present deadline with --deadline" in sentence.text
    known = read_csv_log(path, deadline=40.0)
    assert advise_deadline(known, block=3, rng=np.random.default_rng(0)) is not None


def test_a_log_without_a_failure_needs_no_deadline(tmp_path):
    path = write(tmp_path, censored_lines(np.random.default_rng(0), rounds=40, deadline=1e6))
    found = advise_deadline(read_csv_log(path), block=3, rng=np.random.default_rng(0))
    assert found.present is None


@pytest.mark.parametrize(
    "text",
    ["1,a,1,0,40,\n1,b,1,0,40,\n",  # too few
     "1,a,1,0,40,\n1,b,1,0,40,\n1,c,1,0,40,\n1,d,1,1,50,\n",  # an answer took longer
     "1,a,1,0,40,\n1,b,1,0,12,\n1,c,1,0,25,\n1,d,1,0,3,\n1,e,1,0,40,\n"],  # they differ
)  # fmt: skip
def test_failures_that_do_not_share_a_time_show_no_deadline(tmp_path, text):
    assert read_csv_log(write(tmp_path, text)).deadline is None
