"""The world `swap`: at one round the classes exchange their success rates."""

import numpy as np

from fedcohort.arrays import Floats
from fedcohort.world.base import Conditions, World
from fedcohort.world.classes import class_rates
from fedcohort.world.options import Option, read_options
from fedcohort.world.varying import varying

OPTIONS = {"at": Option(None, low=0.0, is_whole=True)}


def make_swap(conditions: Conditions) -> World:
    """Return a world in which the last class gets the rate of the first, and so on in between.

    Option: `at` (first round with the reversed rates, counted from 0; default: half of the
    rounds). A client's success rate is its mean over the rounds that are played.
    """
    options = read_options("swap", conditions.options, OPTIONS)
    before = class_rates(conditions.num_clients, conditions.rates)
    after = class_rates(conditions.num_clients, conditions.rates[::-1])
    if "at" not in options and conditions.rounds is None:
        raise ValueError("world option at must be given where the rounds are not known, got None")
    rounds = conditions.rounds
    at = int(options["at"]) if "at" in options else int(rounds or 0) // 2

    def rates_in(round: int) -> Floats:
        return before if round < at else after

    share_before = 0.0 if rounds is None else min(at / rounds, 1.0)
    success_rates = after + share_before * (before - after)
    rows = varying(rates_in, conditions.num_clients, list(conditions.seeds))
    return World(rows, success_rates=np.clip(success_rates, 0.0, 1.0))
