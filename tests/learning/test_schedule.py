import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fedcohort.learning.schedule import schedule_jobs, schedule_tightly

QUICK = settings(max_examples=100, deadline=None)
JOBS = st.lists(st.integers(1, 40), min_size=1, max_size=60)


@QUICK
@given(steps=st.lists(st.integers(1, 30), max_size=25), slots=st.integers(1, 8))
def test_every_job_runs_once_alone_in_its_slot_and_all_end_within_the_known_bound(steps, slots):
    plan = schedule_jobs(np.array(steps, dtype=np.int64), slots)
    assert plan.slot.shape == plan.start.shape == plan.steps.shape == (len(steps),)
    busy = [
        (int(slot), now)
        for slot, start, length in zip(plan.slot, plan.start, steps, strict=True)
        for now in range(start, start + length)
    ]
    assert len(set(busy)) == len(busy) == sum(steps)
    assert all(0 <= slot < slots and 0 <= now < plan.length for slot, now in busy)
    assert plan.steps.tolist() == steps
    assert plan.length == max((now + 1 for _, now in busy), default=0)
    # Packing into the slot that is free the soonest ends by (sum - last) / slots + last, where
    # last is the length of the job that ends last (Graham 1966).
    last = max(range(len(steps)), key=lambda job: plan.start[job] + steps[job], default=None)
    if last is not None:
        assert slots * (plan.length - steps[last]) <= sum(steps) - steps[last]


def shortest(steps, slots):
    """Return the least length of any schedule, by trying all."""
    loads = {(0,) * slots}
    for length in steps:
        loads = {
            tuple(sorted((*load[:i], load[i] + length, *load[i + 1 :])))
            for load in loads
            for i in range(slots)
        }
    return min(max(load) for load in loads)


@QUICK
@given(steps=st.lists(st.integers(1, 12), min_size=1, max_size=8), slots=st.integers(1, 3))
def test_a_round_is_at_most_a_third_longer_than_the_shortest_possible(steps, slots):
    # longest first: at most 4/3 - 1/(3 slots) of the optimum (Graham 1969)
    assert 3 * slots * schedule_jobs(np.array(steps), slots).length <= (4 * slots - 1) * shortest(
        steps, slots
    )


def test_a_schedule_worked_by_hand():
    # longest first: 5 -> slot 0, 4 -> slot 1, 3 -> slot 1 (free at 4), 3 -> slot 0 (free at 5),
    # 1 -> slot 1 (free at 7)
    plan = schedule_jobs(np.array([3, 5, 1, 4, 3]), 2)
    assert plan.slot.tolist() == [1, 0, 1, 1, 0]
    assert plan.start.tolist() == [4, 0, 7, 0, 5]
    assert plan.length == 8


def test_no_jobs_take_no_steps():
    assert schedule_jobs(np.array([], dtype=np.int64), 3).length == 0


@given(steps=JOBS, most=st.integers(1, 30), multiple=st.sampled_from([1, 4]))
def test_tight_schedules_have_no_more_slots_than_allowed_and_hardly_more_than_needed(
    steps, most, multiple
):
    schedule = schedule_tightly(np.array(steps), most, multiple)
    assert schedule.slots <= most
    needed = -(-sum(steps) // max(steps))
    coarse = max(multiple, needed / 8)
    assert schedule.slots < needed + 3 * coarse
    fewest = schedule_jobs(np.array(steps), min(most, needed))
    if multiple == 1:
        assert schedule.slots * schedule.length <= fewest.slots * fewest.length
    if multiple > 1 and schedule.slots < most:
        assert schedule.slots % multiple == 0


def test_of_the_papers_round_less_than_a_20th_is_idle():
    # 28 runs ask 20 clients each, which train 1 to 4 epochs of 12 steps; about half arrive.
    rng = np.random.default_rng(0)
    idle = []
    for _ in range(50):
        steps = 12 * rng.integers(1, 5, rng.binomial(560, 0.5))
        schedule = schedule_tightly(steps, 560, multiple=4)
        idle.append(1 - steps.sum() / (schedule.slots * schedule.length))
    assert np.mean(idle) < 0.05
