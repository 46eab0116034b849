"""WHO WOULD ANSWER: a world fixes which client would answer in which round. NumPy only.

A world is a table with one row per round and one column per client. The seed fixes the table, so
every selector that plays a seed meets the same failures. There is one file per kind of world, and
one line per kind in `registry.WORLDS`.
"""
