"""Chaos: real Flower deployments that are disturbed on purpose, by a seed.

`python -m chaos` (with `tests` on the path; `make chaos` does it) plays episodes. An episode is one
run of a few rounds on a SuperLink and five clients of its own, disturbed by a schedule that follows
from the seed and the number of the episode alone.
"""
