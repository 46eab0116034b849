"""HOW IT IS COMBINED: rules that turn the updates that arrive into a change of the model.

A rule says how much each update counts, from small arrays with one value per client: shares,
inclusion probabilities, losses. It never sees the updates themselves, so the engine combines the
updates of hundreds of runs, each by its own rule, in one matrix product, and Flower uses the same
rules. A rule may remember numbers about every client, and may ask for the last update of every
client to be remembered. There is one file per rule, and one line per rule in
`registry.AGGREGATIONS`.
"""
