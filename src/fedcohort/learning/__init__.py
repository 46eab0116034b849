"""WHAT IS LEARNT: models, local updates of many clients at once, aggregation rules, the engine. Needs PyTorch."""
