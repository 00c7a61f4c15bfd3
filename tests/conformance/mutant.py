"""A correct component with one fault: `python mutant.py NAME`."""

from __future__ import annotations

import sys

from mutants import MUTANTS

if __name__ == "__main__":
    MUTANTS[sys.argv[1]][2]().run()
