from itertools import islice

import numpy as np
import pytest


@pytest.fixture(scope="session")
def take():
    """Return a function that stacks the first rows of a world."""
    return lambda rows, count: np.stack(list(islice(rows, count)))
