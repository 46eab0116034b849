"""WHAT IS LEARNT: models, local updates of many clients at once, and the engine.

Needs PyTorch.
"""

from fedcohort.learning.engine import Engine
from fedcohort.learning.evaluation import Evaluation
from fedcohort.learning.models import MODELS, make_model
from fedcohort.learning.options import Options
from fedcohort.learning.run import Run
from fedcohort.learning.sgd import Sgd

__all__ = ["MODELS", "Engine", "Evaluation", "Options", "Run", "Sgd", "make_model"]
