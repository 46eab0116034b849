"""WHAT HELPS: studies of our own, beyond the paper.

A study is a design, its runs and its answer:

volatility.py   what is compared: selectors, rules, worlds, partitions, data sets
runs.py         train what is missing, one comparison per data set, world and partition
measures.py     one row of numbers per run
analysis.py     which differences hold: paired by seed, corrected for their number
page.py         tables, figures and sentences
"""
