"""Functions of streams that wait, in a module that a task's process imports without pytest and hypothesis."""

from __future__ import annotations

import asyncio


async def squared(n):
    await asyncio.sleep((n * 7 % 5) / 1000)
    return n * n


async def number_squared(pair):
    return [pair[0], await squared(pair[1])]


def by_three(n):
    return n % 3
