"""A module that named.py imports."""

import time

import named_back as back

__all__ = ["back"]

LIMIT = 1
DEEP = 1
ONE = 1
USED = 0
LATEST = None
STARTED = time.time()


def plus_one(x):
    return x + ONE


def change(x):
    return x
