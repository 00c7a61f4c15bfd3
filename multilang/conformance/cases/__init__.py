"""All cases, one module for each section of the protocol."""

from __future__ import annotations

from importlib import import_module

from multilang.conformance.case import Case, Section

SECTIONS = (
    *("handshake", "pid", "framing", "json_text", "unicode", "sizes", "numbers", "log", "error", "metrics"),
    *("io", "context", "unknown", "end"),
    *(
        "bolt_ordinary",
        "bolt_heartbeat",
        "bolt_tick",
        "bolt_tuple",
        "bolt_emit",
        "bolt_task_ids",
        "bolt_anchors",
        "bolt_ack",
    ),
    *("bolt_fail", "bolt_direct", "bolt_order"),
    *("spout_commands", "spout_sync", "spout_emit", "spout_task_ids", "spout_direct", "spout_ordinary"),
)


def all_sections() -> list[Section]:
    """Return the sections in the order of the protocol."""
    return [import_module(f"{__name__}.{name}").section for name in SECTIONS]


def all_cases(kind: str | None = None) -> list[Case]:
    """Return the cases of a kind of program, or all.

    Args:
        kind: ``"bolt"`` or ``"spout"``; None: all cases.
    """
    return [case for section in all_sections() for case in section.cases if kind is None or case.fits(kind)]
