"""Exit statuses: what a script that runs the command can tell from them."""

from __future__ import annotations

OK = 0
FAILED_TUPLES = 1  # tuples failed for good, or were pending when the run ended though it was to drain
USAGE = 2  # the command line, the topology or its conf is wrong; click's own status for that
NEVER_STARTED = 3  # a component's process died each time before it did anything
BROKE_OFF = 4  # the cluster could not go on
UNAVAILABLE = 69  # EX_UNAVAILABLE: the extra is not installed, or no Nimbus answers
TIMED_OUT = 124  # as timeout(1) has it
INTERRUPTED = 130  # 128 + SIGINT, as shells have it
BROKEN_PIPE = 141  # 128 + SIGPIPE
TERMINATED = 143  # 128 + SIGTERM
