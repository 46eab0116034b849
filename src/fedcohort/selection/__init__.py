"""WHO IS ASKED: selectors, from log-weights over inclusion probabilities to cohorts. NumPy only."""
