"""The world `drift`: the classes exchange their success rates little by little."""

import numpy as np

from fedcohort.arrays import Floats
from fedcohort.world.base import Conditions, World
from fedcohort.world.classes import class_rates
from fedcohort.world.options import Option, read_options
from fedcohort.world.varying import varying

OPTIONS = {"over": Option(None, low=1.0, is_whole=True)}


def make_drift(conditions: Conditions) -> World:
    """Return a world whose rates move in a straight line to those of the classes in reverse.

    Option: `over` (rounds after which the rates are reversed, and stay so; default: all rounds
    that are played). A client's success rate is its mean over the rounds that are played.
    """
    options = read_options("drift", conditions.options, OPTIONS)
    rounds = conditions.rounds
    over = options.get("over", rounds)
    if over is None:
        raise ValueError("world option over must be given where the rounds are not known, got None")
    before = class_rates(conditions.num_clients, conditions.rates)
    after = class_rates(conditions.num_clients, conditions.rates[::-1])

    def rates_in(round: int) -> Floats:
        return before + min(round / over, 1.0) * (after - before)

    share_after = 1.0
    if rounds is not None:
        share_after = float(np.minimum(np.arange(rounds) / over, 1.0).mean())
    success_rates = before + share_after * (after - before)
    rows = varying(rates_in, conditions.num_clients, list(conditions.seeds))
    return World(rows, success_rates=np.clip(success_rates, 0.0, 1.0))
