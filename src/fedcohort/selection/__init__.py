"""WHO IS ASKED: one file per selection scheme, and the mathematics behind them.

`base.py` holds what every scheme gets for free, `registry.py` the schemes by name, and
`protocol.py` the messages. Needs NumPy alone.
"""
