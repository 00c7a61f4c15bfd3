"""The text of an exception, for a person who reads Storm's log."""

from __future__ import annotations

from multilang.component.base import collector_of
from multilang.errors import MultilangError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from multilang.component.base import Component
    from multilang.protocol.messages import Tuple

_EXITS = (
    "ends the task, which is restarted, without end if it does the same again: raise an exception if something is wrong, return "
    "when there is nothing more to do here, and return True from exhausted() when a spout has no more"
)
_MAX_VALUES = 500  # characters of a tuple's values that are shown


def describe(error: BaseException, component: Component, tup: Tuple | None, where: str = "") -> str:
    """Return a text with the exception, its component, task and tuple, and the traceback; passwords in it are masked.

    An error that explains itself has no traceback, unless another exception caused it.
    """
    from traceback import format_exception

    from multilang.helpers.masked import masked_text  # with the regular expressions, which a process needs only now

    context = getattr(component, "context", None)
    who = f"{context.component!r} (task {context.task})" if context else type(component).__name__
    on = ""
    if tup is not None:
        values = repr(tup.values)
        if len(values) > _MAX_VALUES:
            values = f"{values[:_MAX_VALUES]}… ({len(values)} characters)"
        on = f" on tuple {tup.id} from {tup.component!r}, stream {tup.stream!r}, values {values}"
    if where:
        on = f" {where}{on}"
    text = f"{type(error).__name__} in component {who}{on}: {_text(error)}"
    if not (isinstance(error, MultilangError) and error.is_explained) or error.__cause__ is not None:
        text += "\n" + "".join(format_exception(type(error), error, error.__traceback__))
    return masked_text(text)


def _text(error: BaseException) -> str:
    try:
        if isinstance(error, SystemExit):
            text = f"{error}; " if isinstance(error.code, str) else ""
            return f"{text}sys.exit({'' if error.code is None else repr(error.code)}) {_EXITS}"
        return str(error)
    except Exception as another:  # noqa: BLE001 - user code: its exception must be reported all the same
        return f"(its text can't be shown: {type(another).__name__})"


def report_exception(component: Component, error: BaseException, tup: Tuple | None, where: str = "") -> None:
    """Show ``error`` in Storm's log and UI."""
    component.report_error(describe(error, component, tup, where))
    collector_of(component).reported(error)
