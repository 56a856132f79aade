"""Rows of known classes."""

import numpy as np


def blobs(rows=200, features=6, classes=3, seed=0):
    """Returns X float64 [rows x features] around a centre for each class, and y int64 [rows]."""
    draw = np.random.default_rng(seed)
    y = np.arange(rows) % classes
    return 2 * draw.normal(size=(classes, features))[y] + draw.normal(size=(rows, features)), y
