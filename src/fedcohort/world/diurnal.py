"""The world `diurnal`: clients are online by the time of their day."""

import numpy as np

from fedcohort.arrays import Floats
from fedcohort.world.base import Conditions, World
from fedcohort.world.classes import class_rates
from fedcohort.world.online import make_online_world, stays
from fedcohort.world.options import FAILURE, Option, read_options
from fedcohort.world.varying import varying

OPTIONS = {
    "period": Option(24.0, low=2.0, is_whole=True),
    "mean": Option(0.5, 0.0, 1.0),
    "swing": Option(0.4, 0.0, 0.5),
    "zones": Option(4.0, low=1.0, is_whole=True),
    "failure": FAILURE,
}


def make_diurnal(conditions: Conditions) -> World:
    """Return a world in which a client of rate p is online with p (mean + swing sin(...)).

    Every round is drawn anew. Clients are dealt in turn to time zones, whose days are shifted
    against each other by equal parts of a day.

    Options: `period` (rounds of a day, default 24), `mean` (0.5), `swing` (0.4), `zones` (4) and
    `failure` (how often a client that is online fails nevertheless, default 0).
    """
    options = read_options("diurnal", conditions.options, OPTIONS)
    mean = options["mean"]
    swing = options["swing"]
    failure = options["failure"]
    if not swing <= min(mean, 1 - mean):
        raise ValueError(
            f"world option swing must be at most {min(mean, 1 - mean):g}, because mean and swing "
            f"must give rates between 0 and 1, got {swing:g}"
        )
    rates = class_rates(conditions.num_clients, conditions.rates)
    zone = np.arange(conditions.num_clients) % int(options["zones"]) / options["zones"]

    def rates_in(round: int) -> Floats:
        time_of_day = round / options["period"] + zone
        share = mean + swing * np.sin(2 * np.pi * time_of_day)
        return np.asarray(rates * share)

    return make_online_world(
        conditions,
        online=varying(rates_in, conditions.num_clients, list(conditions.seeds)),
        success_rates=rates * mean * (1 - failure),  # the sine vanishes over whole days
        answers=stays(conditions, failure),
    )
