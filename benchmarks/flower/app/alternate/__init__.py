"""Stock FedAvg and CohortStrategy by turns, on clients that return the model unchanged."""
