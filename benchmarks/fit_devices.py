"""Fit the constants of the world `devices` to measured devices.

Usage: python benchmarks/fit_devices.py PROFILES.npz [RECORD.json]

The file holds `computation_ms`, the milliseconds that each device needs per sample, and
`communication_kbps`, the speed of its link in kbit/s. Both are fitted by maximum likelihood: the
link by one log-normal law, and the computation, which has a fast and a slow kind of devices, by a
mixture of two. The script prints the constants, and the largest distance between the fitted and
the measured distribution function. results/explorations/device-fit.json has them for the profiles
that the constants of the package were fitted to: FedScale's device profiles as PyramidFL logged
them (Apache-2.0). The record has the SHA-256 of that file, which is not in this repository.
"""

import hashlib
import json
import sys
from math import sqrt
from pathlib import Path

import numpy as np
from scipy.special import erf

STEPS = 500  # of expectation-maximisation; the constants stop changing long before


def normal_cdf(values, mean, sd):
    """Return the distribution function of the normal law."""
    return (1 + erf((values - mean) / (sd * sqrt(2)))) / 2


def fit_mixture(logs):
    """Return weights, means and standard deviations of two normal laws, [2] each."""
    middle = np.median(logs)
    mean = np.array([logs[logs <= middle].mean(), logs[logs > middle].mean()])
    sd = np.full(2, logs.std() / 2)
    weight = np.full(2, 0.5)
    for _ in range(STEPS):
        density = weight / sd * np.exp(-(((logs[:, None] - mean) / sd) ** 2) / 2)
        share = density / density.sum(axis=1, keepdims=True)
        size = share.sum(axis=0)
        weight = size / len(logs)
        mean = (share * logs[:, None]).sum(axis=0) / size
        sd = np.sqrt((share * (logs[:, None] - mean) ** 2).sum(axis=0) / size)
    return weight, mean, sd


def distance(logs, weight, mean, sd):
    """Return the largest distance of the fitted distribution function from the measured one."""
    values, counts = np.unique(logs, return_counts=True)
    fitted = sum(w * normal_cdf(values, m, s) for w, m, s in zip(weight, mean, sd, strict=True))
    above = np.cumsum(counts) / len(logs)
    below = above - counts / len(logs)
    return max(np.abs(fitted - above).max(), np.abs(fitted - below).max())


def fit(path):
    """Return the constants for a file of device profiles, and how well they fit."""
    with np.load(path, allow_pickle=False) as profiles:
        compute = np.log(profiles["computation_ms"].astype(np.float64))
        link = np.log(profiles["communication_kbps"].astype(np.float64))
    weight, mean, sd = fit_mixture(compute)
    one_law = (np.ones(1), [compute.mean()], [compute.std()])
    link_law = (np.ones(1), [link.mean()], [link.std()])
    return {
        "command": f"python benchmarks/fit_devices.py {path.name}",
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "devices": len(compute),
        "compute shares": weight.tolist(),
        "compute medians": np.exp(mean).tolist(),
        "compute spreads": sd.tolist(),
        "compute distance": float(distance(compute, weight, mean, sd)),
        "compute distance of one law": float(distance(compute, *one_law)),
        "link median": float(np.exp(link.mean())),
        "link spread": float(link.std()),
        "link distance": float(distance(link, *link_law)),
        "correlation of the logarithms": float(np.corrcoef(compute, link)[0, 1]),
    }


def main(path, out=None):
    """Print the constants, and write them to a file if one is named."""
    text = json.dumps({name: rounded(value) for name, value in fit(path).items()}, indent=1)
    print(text)
    if out is not None:
        out.write_text(text + "\n", encoding="utf-8")


def rounded(value):
    """Return a float, or the floats of a list, with five significant digits."""
    if isinstance(value, list):
        return [rounded(one) for one in value]
    return float(f"{value:.5g}") if isinstance(value, float) else value


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:3]))
