"""Whether tests run with their full numbers, as ``scripts/soak`` has them do."""

from __future__ import annotations

import os

SOAK = os.environ.get("MULTILANG_SOAK") == "full"
