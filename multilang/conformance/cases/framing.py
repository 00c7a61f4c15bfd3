"""The output of a program: JSON objects, each followed by a line 'end'.

It is watched in every conversation of a run.
"""

from __future__ import annotations

from multilang.conformance.case import MEASURED, PAGE, Section

section = Section("common/framing", "Framing of what it writes", f"{PAGE}, The Protocol: Notes")
DIES = f"{PAGE}, The Protocol: Notes; {MEASURED}"

section.watch(
    "MUST",
    "framing.json",
    "every message is JSON",
    "Standard output carries nothing but protocol messages: anything else halts the worker.",
    f"{DIES} (garbage)",
)
section.watch(
    "MUST",
    "framing.stray",
    "no text before a message",
    "A print of user code is read as the beginning of the next message, which then is not JSON: the worker halts.",
    f"{DIES} (print, pre_print)",
)
section.watch(
    "MUST",
    "framing.object",
    "every message is a JSON object",
    "Arrays, strings and numbers are no messages of a component: the worker halts.",
    f"{DIES} (not_object, print_json)",
)
section.watch(
    "MUST",
    "framing.empty",
    "no empty message",
    "A line 'end' with nothing before it halts the worker.",
    f"{DIES} (empty)",
)
section.watch(
    "MUST",
    "framing.end",
    "the closing line is 'end' and nothing else",
    "A message is ended by a line that holds only 'end'; with a blank in it Storm reads on, and the next message is lost.",
    f"{DIES} (trailing_space)",
)
section.watch(
    "MUST",
    "framing.partial",
    "no message breaks off",
    "The output does not end inside a message.",
    f"{DIES} (partial_exit)",
)
section.watch(
    "MUST",
    "framing.bom",
    "no byte order mark",
    "The message begins with its JSON: what stands before it makes it a text that Storm can't use.",
    f"{DIES} (garbage)",
)
section.watch(
    "MUST",
    "framing.utf8",
    "all is UTF-8",
    "Storm reads UTF-8 and puts a replacement character where a byte is wrong: data changes in silence.",
    "Storm's JsonSerializer",
)
section.watch(
    "MUST",
    "framing.flood",
    "messages end",
    "Output without a line 'end' fills the worker's memory.",
)
section.watch(
    "MUST",
    "framing.depth",
    "no message is nested deeper than 400",
    "Storm's parser refuses more, and the worker halts.",
    MEASURED,
)
section.watch(
    "MUST",
    "framing.second",
    "one JSON object a message",
    "Storm reads the first object of a message and drops what follows it: an ack there is lost.",
    MEASURED,
)
section.watch(
    "SHOULD",
    "framing.crlf",
    "lines end with LF",
    "A carriage return before the line feed passes through Storm's readLine; other parents compare bytes.",
    f"{MEASURED} (crlf)",
)
section.watch(
    "SHOULD",
    "framing.blank",
    "no empty lines between messages",
    "A message begins where the one before it ended.",
    DIES,
)
section.watch(
    "SHOULD",
    "framing.control",
    "control characters are escaped",
    "JSON has U+0000 to U+001F only as escapes inside of strings; that Storm's parser is lenient is no promise.",
    "RFC 8259, section 7",
)
section.watch(
    "SHOULD",
    "framing.duplicate",
    "no key twice in an object",
    "Which of the two values counts is for each parser to decide.",
    "RFC 8259, section 4",
)
section.watch(
    "MUST",
    "framing.lost",
    "each message has its own line 'end'",
    "Storm reads the first object up to a line 'end' and drops the rest: a second message there, an ack perhaps, is lost.",
    MEASURED,
)
