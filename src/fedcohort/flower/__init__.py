"""ON FLOWER: the same selectors in deadline rounds with real clients.

On the server, `CohortStrategy(FedAvg(), "e3cs-0.5", cohort_size=10, deadline=60.0)` takes the
place of `FedAvg()`. On the clients, `app = client_app()` takes the place of `app = ClientApp()`.

Clients keep their identity over restarts, only valid models count, and a server that crashed
resumes from its checkpoint. `flwr_internals.py` lists the few private parts of Flower that are
used.
"""

try:
    import flwr  # noqa: F401
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(
        "fedcohort.flower needs Flower: pip install 'fedcohort[flower]'", name="flwr"
    ) from missing

from fedcohort.flower.client import Stopped, check_deadline, client_app, force_stop, time_left
from fedcohort.flower.deadlines import AutoDeadline, RecentTimes
from fedcohort.flower.eligibility import ClientInfo
from fedcohort.flower.grid import DeadlineGrid
from fedcohort.flower.limits import Limits
from fedcohort.flower.strategy import CohortStrategy
from fedcohort.flower.volatility import volatility

__all__ = [
    "AutoDeadline",
    "ClientInfo",
    "CohortStrategy",
    "DeadlineGrid",
    "Limits",
    "RecentTimes",
    "Stopped",
    "check_deadline",
    "client_app",
    "force_stop",
    "time_left",
    "volatility",
]
