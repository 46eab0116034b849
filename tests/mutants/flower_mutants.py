"""Bugs in the integration with Flower."""

from mutant import Mutant

MUTANTS = (
    Mutant(
        "max_norm of a reply is strict",
        "flower/replies.py",
        "if not norm <= max_norm:",
        "if not norm < max_norm:",
        ("tests/flower/test_replies.py",),
    ),
)
