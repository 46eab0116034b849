"""HOW IT IS COMBINED: rules that turn the updates that arrive into a change of the model.

A rule is a function `(step, arrived) -> change`. It works on NumPy arrays and on PyTorch tensors
alike, so the engine and Flower share one registry. There is one file per rule, and one line per
rule in `registry.AGGREGATIONS`.
"""
