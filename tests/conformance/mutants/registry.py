"""The correct components that are broken, and where each broken one is put down."""

from __future__ import annotations

import importlib.util
from pathlib import Path

ROOT = Path(__file__).parents[3]
spec = importlib.util.spec_from_file_location("plain", ROOT / "examples" / "conformance" / "plain.py")
plain = importlib.util.module_from_spec(spec)
spec.loader.exec_module(plain)

Bolt, Spout = plain.Bolt, plain.Spout

MUTANTS = {}  # name -> (kind, the case meant for it, class)


def mutant(kind, case):
    def add(cls):
        MUTANTS[cls.__name__] = (kind, case, cls)
        return cls

    return add
