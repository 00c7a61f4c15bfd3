"""What all tests have in common: how long and how hard hypothesis looks."""

from __future__ import annotations

import os
import signal

from hypothesis import HealthCheck, settings

# Tests share a busy machine: how long one example takes says nothing. A failure prints what repeats it.
settings.register_profile("tests", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.register_profile("full", settings.get_profile("tests"), max_examples=2000)
settings.load_profile("full" if os.environ.get("MULTILANG_SOAK") == "full" else "tests")

# What a shell starts in the background ignores SIGINT, and so would every process that tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
