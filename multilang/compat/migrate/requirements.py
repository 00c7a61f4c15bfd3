"""Requirements of a project that have no wheel."""

from __future__ import annotations

import os

from multilang.compat.migrate.files import files_of, why_unread
from multilang.compat.migrate.finding import Finding
from multilang.compat.wheels import BY_ENVIRONMENT, NO_ANSWER, TOO_LATE, requirements_in, without_wheels

TYPE_CHECKING = False
if TYPE_CHECKING:
    from multilang.compat.wheels import Requirement


def requirement_files(root: str) -> list[str]:
    """Return the files with requirements of a project: those of ``virtualenvs/``, and ``requirements*.txt``."""
    found = []
    for path in files_of(root):
        folder, name = os.path.split(path)
        named = name.startswith("requirements") or os.path.basename(folder) in ("virtualenvs", "requirements")
        if name.endswith(".txt") and named:
            found.append(path)
    return found


def wheel_findings(root: str, limit: float = 60) -> list[Finding]:
    """Return the requirements of a project that have no wheel for this Python, by file and line. pip's index is asked.

    Args:
        root: The project's folder.
        limit: Seconds after which nothing more is asked.
    """
    asked: dict[tuple[str, tuple[str, ...]], Requirement] = {}
    found: list[Finding] = []
    for path in requirement_files(root):
        unread = why_unread(path)
        if unread:
            found.append(Finding(path, 0, unread, "look at it by hand", False))
            continue
        try:
            lines = requirements_in(path, root)
        except (OSError, ValueError) as error:
            found.append(Finding(path, 0, f"it can't be read: {error}", "mend the file"))
            continue
        for each in lines:
            if each.is_source:
                what = f"{each.text} names sources instead of a wheel, which a jar can't hold"
                fix = "name a version that has a wheel, or, if it needs no compiler, give --build to multilang package"
                found.append(Finding(path, each.line, what, fix))
            elif each.is_place:
                what = f"{each.text} names a file, a folder or an address, about which pip is not asked, since it might run code of it"
                found.append(Finding(path, each.line, what, "look at it by hand", False))
            else:
                asked.setdefault((each.text, each.options), each)
    open_ = 0
    for requirement, reason in without_wheels(list(asked.values()), limit):
        if reason in (BY_ENVIRONMENT, NO_ANSWER, TOO_LATE):
            open_ += 1
            last = requirement, reason
            continue
        fix = "name another version or package, or, if it needs no compiler, give --build to multilang package"
        found.append(Finding(requirement.path, requirement.line, reason, fix))
    if open_:
        what = f"whether {open_} of {len(asked)} packages have wheels is not known, because {last[1]}"
        found.append(Finding(last[0].path, 0, what, "try again, or see what multilang package says", False))
    return sorted(set(found), key=lambda each: (each.path, each.line, each.what))
