"""The choice between a sample and the full numbers, which ``scripts/soak`` asks for."""

from __future__ import annotations

import os

SOAK = os.environ.get("MULTILANG_SOAK") == "full"
