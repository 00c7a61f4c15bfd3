"""Compiled packages for the workers' Python and platform: wheels, downloaded by pip and unpacked."""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from multilang.engine.child import module_command
from multilang.shipping.contents import Contents, Item
from multilang.shipping.errors import ShippingError

if TYPE_CHECKING:
    from collections.abc import Sequence

LEAST = (3, 10)
_OLD_NAMES = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}  # N of glibc 2.N -> old name
_PORTABLE = re.compile(r"(many|musl)linux|macosx")
_PURE = re.compile(r"(?m)^Tag: \S+-none-any$")
_MUTABLE = {"RECORD", "INSTALLER", "REQUESTED", "direct_url.json"}  # written by the installer, not part of the package


def this_python() -> str:
    """Return the running Python's version, as ``3.11``."""
    return ".".join(map(str, sys.version_info[:2]))


@dataclass(frozen=True)
class WheelTarget:
    """The Python and platform of the workers.

    Attributes:
        python: The version, as ``3.11``.
        platform: The platform as pip names it; None: this machine's.
    """

    python: str
    platform: str | None = None

    @classmethod
    def of(cls, python: str | None, platform: str | None) -> WheelTarget:
        """Return a checked target.

        Args:
            python: The version; None: the running Python's.
            platform: The platform as pip names it; None: this machine's.

        Raises:
            ShippingError: An argument is no version or no platform.
        """
        match = re.fullmatch(r"(\d)\.(\d+)", python or this_python())
        if match is None:
            raise ShippingError(f"--python {python!r} is not a version; write it as {this_python()}")
        if (int(match[1]), int(match[2])) < LEAST:
            raise ShippingError(f"--python {python}: the components' code needs Python 3.10 or newer")
        if platform is not None and not re.fullmatch(r"[a-z][A-Za-z0-9_]*_[A-Za-z0-9_]+", platform):
            raise ShippingError(f"--platform {platform!r} is not a platform; write it as manylinux2014_x86_64")
        return cls(match[0], platform)

    @property
    def here(self) -> bool:
        """True if it is this machine's Python, whose compiled code can be run here and shipped as it is."""
        return self.python == this_python() and self.platform is None

    @property
    def platform_name(self) -> str:
        """The platform's name for people."""
        return self.platform or sysconfig.get_platform()

    def pip_options(self) -> list[str]:
        """Return the options with which pip chooses wheels for this target."""
        if self.here:
            return []
        options = ["--python-version", self.python, "--implementation", "cp"]
        return options + [word for name in _compatible(self.platform) for word in ("--platform", name)]


def _compatible(platform: str | None) -> list[str]:
    """Return the platforms whose wheels run on this one, since pip takes only named ones. glibc 2.28 runs what 2.17
    does.
    """
    if platform is None:
        return []
    match = re.fullmatch(r"manylinux(?:_2_(\d+)|(1|2010|2014))_(\w+)", platform)
    if match is None:
        return [platform]
    newest = int(match[1]) if match[1] else {name[9:]: minor for minor, name in _OLD_NAMES.items()}[match[2]]
    names = []
    for minor in range(newest, 4, -1):
        names.append(f"manylinux_2_{minor}_{match[3]}")
        if minor in _OLD_NAMES:
            names.append(f"{_OLD_NAMES[minor]}_{match[3]}")
    return names


def add_ujson(contents: Contents, target: WheelTarget) -> str:
    """Add ujson's compiled module, of the version installed here, and return a description of it."""
    version = metadata.version("ujson")
    if target.here and add_installed_ujson(contents):
        return f"ujson {version}, as installed here"
    with tempfile.TemporaryDirectory() as folder:
        wheel = download([f"ujson=={version}"], target, Path(folder), deps=False)[0]
        add_wheel(contents, wheel, "ujson")
        return f"ujson {version}, {wheel.name}"


def add_installed_ujson(contents: Contents) -> bool:
    """Add the installed ujson. Return False if it was built here, so that it may need libraries that workers lack."""
    installed = metadata.distribution("ujson")
    if not _PORTABLE.search(installed.read_text("WHEEL") or ""):
        return False
    for file in installed.files or ():
        if _of_ujson(str(file)):
            contents.add_file(str(file), Path(str(file.locate())), "ujson", "reads and writes the protocol's JSON")
    return True


def add_distribution(contents: Contents, name: str) -> list[str]:
    """Add an installed package with the installed packages that it needs, and return their names with versions.

    Returns an empty list if one is not installed, or not as a wheel has it: built on this machine, or linked to its
    sources.
    """
    found: dict[str, metadata.Distribution] = {}
    queue = [name]
    while queue:
        each = _normal(queue.pop())
        if each in found or (each != _normal(name) and not _is_installed(each)):
            continue  # it is not needed here by a marker, since otherwise pip would have installed it
        try:
            installed = metadata.distribution(each)
        except metadata.PackageNotFoundError:
            return []
        about = installed.read_text("WHEEL") or ""
        if installed.files is None or not (_PURE.search(about) or _PORTABLE.search(about)) or _is_linked(installed):
            return []
        found[each] = installed
        queue += [_name(line) for line in installed.requires or () if "extra" not in line.partition(";")[2]]
    there = parts_of(contents)
    notes = []
    for installed in found.values():
        part = f"wheel {_wheel_name(installed)}"
        if part in there or installed.name == "ujson":
            continue
        for file in installed.files or ():
            path = Path(str(file.locate()))
            if ".." in file.parts or file.suffix == ".pyc" or (".dist-info" in file.parts[0] and file.name in _MUTABLE):
                continue
            contents.add_file(file.as_posix(), path, part, "as it is installed here")
        notes.append(f"{installed.name} {installed.version}")
    return notes


def parts_of(contents: Contents) -> set[str]:
    """Return the parts that have a file in there."""
    return {item.part for item in contents}


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _name(line: str) -> str:
    """Return the package that a line of requirements is about."""
    match = re.match(r"\s*([A-Za-z0-9._-]+)", line)
    return match[1] if match else line


def _wheel_name(installed: metadata.Distribution) -> str:
    """Return the package's name as in a wheel's file name."""
    return re.sub(r"[-_.]+", "_", installed.name)


def _is_installed(name: str) -> bool:
    try:
        metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def _is_linked(installed: metadata.Distribution) -> bool:
    return '"editable": true' in (installed.read_text("direct_url.json") or "")


def add_requirements(contents: Contents, requirements: Path, target: WheelTarget, build: bool = False) -> list[str]:
    """Add the wheels that a requirements file asks for, and those that they need; return their names with versions.

    ``build``: let pip build packages that have no wheel but need no compiler, if the target is this machine.
    """
    if not requirements.is_file():
        raise ShippingError(f"there is no requirements file {requirements}")
    shipped = []
    with tempfile.TemporaryDirectory() as folder:
        what = ["-r", str(requirements)]
        try:
            wheels = download(what, target, Path(folder))
        except ShippingError as problem:
            wheels = _built(what, Path(folder)) if build and target.here else []
            if not wheels:
                raise problem
        for wheel in wheels:
            name, version = wheel.name.split("-")[:2]
            if name == "storm_multilang":
                continue  # the package itself is in every jar
            add_wheel(contents, wheel, "ujson" if name == "ujson" else f"wheel {name}")
            shipped.append(f"{name} {version}")
    return shipped


def download(what: Sequence[str], target: WheelTarget, folder: Path, deps: bool = True) -> list[Path]:
    """Download the wheels that pip finds for ``what``, and return them sorted by name.

    Raises ShippingError with pip's reason.
    """
    command = [*module_command("pip"), "download", "--quiet", "--disable-pip-version-check", "--no-input"]
    command += ["--only-binary", ":all:", "--dest", str(folder), *target.pip_options()]
    shown = subprocess.run(
        [*command, *([] if deps else ["--no-deps"]), *what],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    if shown.returncode:
        lines = [line for line in (shown.stderr or shown.stdout).splitlines() if line.strip()]
        errors = [line for line in lines if line.startswith("ERROR")] or lines[-3:]
        raise ShippingError(
            f"pip found no wheels of {' '.join(what)} for Python {target.python}, {target.platform_name} "
            f"(what has no wheel can go in an archive: multilang archive):\n" + "\n".join(errors)
        )
    return sorted(folder.glob("*.whl"))


def _built(what: Sequence[str], folder: Path) -> list[Path]:
    """Return the wheels that pip finds or builds; none if it can't, or if one is for this machine alone."""
    command = [*module_command("pip"), "wheel", "--quiet", "--disable-pip-version-check", "--no-input"]
    shown = subprocess.run(
        [*command, "--wheel-dir", str(folder), *what], stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    wheels = sorted(folder.glob("*.whl")) if not shown.returncode else []
    portable = all(each.stem.endswith("-none-any") or _PORTABLE.search(each.stem) for each in wheels)
    return wheels if portable else []


def add_wheel(contents: Contents, wheel: Path, part: str) -> None:
    """Unpack a wheel as an installer would, without its programs, headers and data."""
    with zipfile.ZipFile(wheel) as archive:
        for info in archive.infolist():
            name = _unpacked(info.filename)
            if name is None or info.is_dir() or (part == "ujson" and not _of_ujson(name)):
                continue
            contents.add(Item(name, archive.read(info), part, f"from {wheel.name}"))


def _of_ujson(name: str) -> bool:
    """Return whether it is ujson's compiled module or its licence. Types are left out, as no worker reads them."""
    if ".dist-info/" in name:
        return Path(name).name not in _MUTABLE
    return name.startswith("ujson") and name.endswith((".so", ".py")) and "/" not in name


def _unpacked(name: str) -> str | None:
    folder, _, rest = name.partition("/")
    if not folder.endswith(".data"):
        return name
    scheme, _, inner = rest.partition("/")
    return inner if scheme in ("purelib", "platlib") else None
