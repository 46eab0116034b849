"""ON FLOWER: the same selectors on real clients: deadline rounds, stable identities, valid models, state that survives.

Server: `CohortStrategy(FedAvg(), selector="e3cs-0.5", cohort_size=10, deadline=60.0)` in place of `FedAvg()`.
Client: `app = client_app()` in place of `app = ClientApp()`.

Flower's public API alone is used, but for what `private.py` lists.
"""

try:
    import flwr  # noqa: F401
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(
        "fedcohort.flower needs Flower: pip install 'fedcohort[flower]'", name="flwr"
    ) from missing

from fedcohort.flower.client import Stopped, check_deadline, client_app, force_stop, time_left
from fedcohort.flower.grid import DeadlineGrid
from fedcohort.flower.limits import Limits
from fedcohort.flower.strategy import CohortStrategy
from fedcohort.flower.volatility import volatility

__all__ = [
    "CohortStrategy",
    "DeadlineGrid",
    "Limits",
    "Stopped",
    "check_deadline",
    "client_app",
    "force_stop",
    "time_left",
    "volatility",
]
