"""A virtual environment made complete and relocatable, with its base interpreter and the standard library.

A venv is half of a Python: its ``bin/python`` looks for the other half in the place that ``pyvenv.cfg`` names. Without
that file, Python looks for its library beside itself (``../lib/python3.x/os.py``), wherever that is. So the two halves
are put together without it.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING

from multilang.shipping.errors import ShippingError
from multilang.shipping.tree import Entry, Tree

if TYPE_CHECKING:
    from typing import Any

# Parts of the standard library that no component imports, and that are large or need a screen.
_NOT_SHIPPED = ("test", "idlelib", "turtledemo", "tkinter", "ensurepip", "config-*", "site-packages", "dist-packages")
_ABOUT = """\
import json, sys, sysconfig
print(json.dumps({
    "version": "%d.%d" % sys.version_info[:2], "program": sys._base_executable, "base": sys.base_prefix,
    "library": sysconfig.get_path("stdlib"), "compiled": sysconfig.get_config_var("DESTSHARED"),
}))
"""
_SELF_CHECK = """\
import json, os, sys
import hashlib, socket, zlib
try:
    with open("/proc/self/maps") as file:
        mapped = sorted({line.split()[-1] for line in file if "libpython" in line})
except OSError:
    mapped = []
print(json.dumps([sys.prefix, *filter(os.path.exists, sys.path), *mapped]))
"""
# The beginning of a script whose interpreter is beside it: sh runs the second line, and Python reads it as a string.
_SHEBANG = "#!/bin/sh\n'''exec' \"$(dirname -- \"$0\")/{python}\" \"$0\" \"$@\"\n' '''\n"


def is_environment(folder: Path) -> bool:
    """Return whether it is a virtual environment."""
    return (folder / "pyvenv.cfg").is_file()


def environment_tree(folder: Path) -> Tree:
    """Return the whole of a virtual environment. Raises ShippingError for one that has parts elsewhere."""
    folder = Path(os.path.realpath(folder))
    if re.search(r"(?im)^include-system-site-packages\s*=\s*true", (folder / "pyvenv.cfg").read_text()):
        raise ShippingError(
            f"{folder} uses the system's packages too, which don't come along; make it without --system-site-packages"
        )
    about = _ask(folder / "bin" / "python3", _ABOUT)
    python = f"python{about['version']}"
    library = f"lib/{python}"
    tree = Tree()
    tree.add_folder(Path(about["library"]), f"{library}/", lambda name: any(fnmatch(name, one) for one in _NOT_SHIPPED))
    compiled = Path(about["compiled"] or "")
    if about["compiled"] and compiled.is_dir() and f"{library}/lib-dynload" not in tree.entries:
        tree.add_folder(compiled, f"{library}/lib-dynload/")
    for shared in Path(about["base"], "lib").glob(f"libpython{about['version']}*.so*"):
        if not str(shared).startswith("/usr/lib"):
            tree.add(f"lib/{shared.name}", Entry(Path(os.path.realpath(shared))))
    tree.add_folder(folder, "", _left_behind)
    tree.add(f"bin/{python}", Entry(_program(Path(os.path.realpath(about["program"])), about["base"])))
    for name in ("python", "python3"):
        tree.add(f"bin/{name}", Entry(link=python))
    if "dist-packages" in Path(about["library"], "site.py").read_text(encoding="utf-8"):
        # Debian's Python looks for packages there.
        tree.add("lib/python3/dist-packages", Entry(link=f"../{python}/site-packages"))
    _check_paths(tree, folder)
    _relocate_scripts(tree, folder, python)
    return tree


def _program(path: Path, base: str) -> bytes:
    """Return the interpreter, changed to look for a shared libpython beside itself and not where it was installed.

    The loader's search path in the file is a string that may be made shorter in place, as chrpath does it.
    """
    data = path.read_bytes()
    installed, relative = f"{base}/lib\0".encode(), b"$ORIGIN/../lib\0"
    if data.count(installed) == 1 and len(relative) <= len(installed):
        return data.replace(installed, relative.ljust(len(installed), b"\0"))
    return data


def check_interpreter(archive: Path, name: str) -> bool:
    """Unpack the archive elsewhere and run its Python. Return False when it has none, or none for this machine.

    Raises ShippingError when it works only because of something outside of the archive.
    """
    with tempfile.TemporaryDirectory() as folder:
        root = os.path.realpath(folder)
        subprocess.run(["tar", "-xzf", archive, "-C", root], check=True)
        python = Path(root, "bin", "python3")
        if not python.exists():
            return False
        try:
            shown = subprocess.run(
                [python, "-E", "-s", "-B", "-c", _SELF_CHECK], cwd="/", capture_output=True, text=True, env={"PATH": ""}
            )
        except OSError:
            return False  # compiled for another machine
        if shown.returncode:
            raise ShippingError(f"{name}: its Python does not run in another folder:\n{shown.stderr.strip()[-2000:]}")
        outside = [path for path in json.loads(shown.stdout) if not os.path.realpath(path).startswith(root)]
        if outside:
            raise ShippingError(
                f"{name}: its Python needs {', '.join(outside)} outside of the folder, so it runs on this machine only; "
                "use a virtual environment of a Python without a shared libpython, or a relocatable build of Python"
            )
    return True


def _left_behind(name: str) -> bool:
    folder, _, file = name.partition("/")
    if folder == "bin" and file:
        return file.lower().startswith("activate") or re.fullmatch(r"python[0-9.]*", file) is not None
    return name in ("pyvenv.cfg", "include", ".gitignore")


def _check_paths(tree: Tree, folder: Path) -> None:
    """Refuse an installation that stays in its own folder (pip install -e), since that folder is not shipped."""
    for name, entry in tree.entries.items():
        if name.endswith(".pth") and isinstance(entry.source, Path):
            for line in entry.source.read_text(encoding="utf-8", errors="replace").splitlines():
                if line.startswith("/") and not Path(line.strip()).is_relative_to(folder):
                    raise ShippingError(
                        f"{folder / name} leads to {line.strip()}, which does not come along; install that package into "
                        "the environment without -e"
                    )


def _relocate_scripts(tree: Tree, folder: Path, python: str) -> None:
    """Change the programs that pip made, which start with the absolute path of the environment's Python."""
    for name, entry in list(tree.entries.items()):
        if not name.startswith("bin/") or not isinstance(entry.source, Path):
            continue
        with entry.source.open("rb") as file:
            if file.read(2) != b"#!":
                continue
        first, _, rest = entry.source.read_bytes().partition(b"\n")
        if str(folder).encode() in first:
            tree.add(name, Entry(_SHEBANG.format(python=python).encode() + rest, mode=entry.mode))


def _ask(python: Path, program: str) -> dict[str, Any]:
    try:
        shown = subprocess.run([python, "-I", "-c", program], capture_output=True, text=True)
    except OSError as error:
        raise ShippingError(f"{python} can't be run: {error.strerror or error}") from None
    if shown.returncode:
        raise ShippingError(f"{python} does not work: {shown.stderr.strip()[-2000:]}")
    about: dict[str, Any] = json.loads(shown.stdout)
    return about
