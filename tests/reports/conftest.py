"""Helpers of these tests are imported by name."""

import sys
from pathlib import Path

sys.path += [str(Path(__file__).parent), str(Path(__file__).parents[1] / "paper")]
