"""From a log to advice: what a federation recorded, what to change, and how sure that is.

Read a log with `read_log`, then `advise` or `replay`. Words come from `sentences`.
"""

from fedcohort.advice.advisor import Advice, Options, advise
from fedcohort.advice.export import to_dict
from fedcohort.advice.log import FederationLog
from fedcohort.advice.played import Description, play_description
from fedcohort.advice.replays import Replayed, replay
from fedcohort.advice.sources import read_log
from fedcohort.advice.text import sentences
from fedcohort.advice.wording import Sentence

__all__ = [
    "Advice",
    "Description",
    "FederationLog",
    "Options",
    "Replayed",
    "Sentence",
    "advise",
    "play_description",
    "read_log",
    "replay",
    "sentences",
    "to_dict",
]
