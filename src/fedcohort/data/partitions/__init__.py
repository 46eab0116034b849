"""Partitions: ways to divide the samples of a dataset among the clients.

A partition is a function `(labels, num_clients, rng) -> parts`. `parts` holds one ascending array
of sample indices per client. No sample has two owners (except in `primary-label` with overlap and
in `independent-label`), and the same generator state gives the same partition. There is one file
per partition, and one line per partition in `registry.PARTITIONS`.
"""
