"""A topology as a jar for Storm, or as a .tgz for its blob store. The same files always give the same bytes."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import multilang
from multilang.helpers import private
from multilang.helpers.lazy import home_of
from multilang.shipping.commands import LAUNCHER, ShippedCommands, add_tree
from multilang.shipping.conditions import WorkersPython
from multilang.shipping.contents import EVERYTHING_HARMLESS, YOURS, Contents, Item
from multilang.shipping.errors import ShippingError
from multilang.shipping.guard import Guard
from multilang.shipping.imports import follow, imports_of, is_installed
from multilang.shipping.named import confs, named_in
from multilang.shipping.packages import add_packages, packages_of
from multilang.shipping.shippable import check_shippable
from multilang.shipping.wheels import WheelTarget, add_requirements, add_ujson
from multilang.topology.commands import blob_map, check_commands, local_names
from multilang.topology.home import Home
from multilang.topology.identity import submission
from multilang.topology.importing import OTHER_LIBRARIES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from multilang.shipping.commands import Shipped
    from multilang.shipping.named import Named
    from multilang.topology import Topology

RESOURCES = "resources/"  # ShellProcess: "packaged inside of your topology jar under the resources subdirectory"
_META = "META-INF/"
_SERVICES = "META-INF/services/"  # Java's ServiceLoader reads one file of each name
_SIGNED = (".SF", ".RSA", ".DSA")  # the signature of another jar is not valid in this one
_LEGAL = ("LICENSE", "NOTICE", "DEPENDENCIES", "ABOUT", "README", "COPYING", "CHANGELOG")
MANIFEST = "manifest.json"
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest date that a zip can have
_JAR_MANIFEST = b"Manifest-Version: 1.0\r\nCreated-By: storm-multilang\r\n\r\n"
# The parts of this package that every component's process runs. Others are added if the topology's modules import them.
_FOR_CHILDREN = {"child", "component", "exchange", "helpers", "loading", "protocol", "topology"}
_OURS = "multilang"


@dataclass(frozen=True)
class Shipment:
    """A topology with all its files.

    ``in_worker``: component id -> the words for the worker's directory, of those that are to be started there.
    ``java``: component id -> what Java made for it, serialised (``java_objects``).
    ``missing``: a sentence for each setting that the conf must have when it is submitted.
    """

    topology: Topology
    target: WheelTarget
    contents: Contents
    commands: dict[str, tuple[str, str]]
    notes: list[str]
    leave_out: Sequence[str] = ()
    named: Sequence[Named] = ()
    modules: Sequence[str] = ()
    in_worker: Mapping[str, Sequence[Shipped]] = field(default_factory=dict)
    missing: Sequence[str] = ()
    java: Mapping[str, bytes] = field(default_factory=dict)

    def jar(self, others: Sequence[Path] = ()) -> bytes:
        """Return the jar.

        Args:
            others: Jars whose classes are added, such as Flux's.

        Raises:
            ShippingError: A jar can't be read, or two have different files of one name.
        """
        files = {f"{RESOURCES}{item.name}": item.data for item in self.contents}
        for other in others:
            merge(files, other)
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            for name in ["META-INF/MANIFEST.MF", *sorted(files)]:
                info = zipfile.ZipInfo(name, _EPOCH)
                info.create_system = 3
                info.external_attr = 0o100644 << 16
                info.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(info, files.get(name, _JAR_MANIFEST))
        return out.getvalue()

    def unpack(self, folder: Path) -> None:
        """Write the files into a folder, as a supervisor does with resources/.

        Args:
            folder: The folder.
        """
        for item in self.contents:
            path = folder / item.name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(item.data)
        for name in self.contents.folders:
            (folder / name).mkdir(parents=True, exist_ok=True)

    def check(self) -> bool:
        """Load the topology from the files alone, in a process of its own.

        Returns:
            False if the files are for another machine, so that nothing was checked.

        Raises:
            ShippingError: It can't be loaded, because a module is imported by a computed name, or a data file is
                missing. The text has the traceback.
        """
        if not self.target.here:
            return False
        readers = {each.reader for each in self.named if each.reader is not None}
        asked = {
            "left_out": list(self.leave_out),
            "everywhere": sys.path,
            "installed": [path for path in sys.path if is_installed(path)],
            "modules": list(self.modules),
            "readers": [[reader, conf] for reader in sorted(readers) for _, conf in confs(self.topology)],
        }
        with tempfile.TemporaryDirectory() as folder:
            self.unpack(Path(folder))
            shown = subprocess.run(
                [sys.executable, "-B", "-E", "-s", "-S", "-c", _CHECK],
                cwd=folder,
                input=json.dumps(
                    asked
                ).encode(),  # not an argument, whose length is limited and which is visible in lists of processes
                capture_output=True,
            )
        if shown.returncode:
            raise ShippingError(
                "the topology can't be loaded from the jar's files alone (name what is missing with --include or "
                f"--requirements):\n{shown.stderr.decode('utf-8', 'replace').strip()}"
            )
        return True


# Modules that the workers have themselves, and the packages that these need, are loaded from this machine.
_CHECK = """\
import json, sys
from importlib.machinery import PathFinder
asked = json.loads(sys.stdin.buffer.read())
sys.path.insert(0, "")
class LeftOut:
    @staticmethod
    def find_spec(name, path=None, target=None):
        return PathFinder.find_spec(name, asked["everywhere"]) if name in asked["left_out"] else None
if asked["left_out"]:
    sys.meta_path.append(LeftOut)
    sys.path += asked["installed"]
import run_topology
manifest = run_topology.check()
target, submitted = manifest["topology"], manifest["submitted"]
sys.argv[:] = submitted["arguments"]
from multilang.topology import importing
importing.by_task = True
from multilang.topology import load_topology
loaded = load_topology(target)
from multilang.component.errors import ConfigError
from multilang.topology.identity import check_found
for id in submitted["components"]:
    try:
        check_found(submitted, loaded[id], target, run_topology.HERE)
    except ConfigError as problem:
        sys.exit(str(problem))
from importlib import import_module
for module in asked["modules"]:
    import_module(module)
for reader, conf in asked["readers"]:
    try:
        import_module(reader).check_named(conf)
    except ConfigError as problem:
        sys.exit(str(problem))
"""


def pack(
    topology: Topology,
    *,
    target: WheelTarget | None = None,
    requirements: Path | None = None,
    leave_out: Sequence[str] = (),
    include: Sequence[Path] = (),
    interpreter: str = "python3",
    blobs: Sequence[str] = (),
    guard: Guard = EVERYTHING_HARMLESS,
    build: bool = False,
) -> Shipment:
    """Collect everything that the tasks of a topology need on a worker that has Python and nothing else.

    Args:
        topology: The topology, which must be in a module.
        target: The Python and platform of the workers; None: those of this machine.
        requirements: A file with the requirements of packages to add as wheels.
        leave_out: Modules that the workers have themselves.
        include: Further files and folders, below the topology's own folder.
        interpreter: The workers' command for Python.
        blobs: The names in the worker's directory of blobs that the topology's conf does not map.
        guard: The choice of what may be shipped of the folders.
        build: Whether pip may build requirements that have no wheel, where that needs no compiler.

    Returns:
        The topology with its files.

    Raises:
        ShippingError: Something can't be shipped; the text has what to do.
        TopologyError: No process could import the topology.
    """
    check_shippable(topology)
    if not interpreter or len(interpreter.split()) != 1:
        raise ShippingError(f"--interpreter {interpreter!r} is not one word; Storm starts a component with two")
    target = target or WheelTarget.of(None, None)
    module, file, root, attr = _place(topology)
    home = topology.home or Home(str(root), str(file.parent))
    check_commands(topology, home=home, more=blobs)
    contents = Contents(guard)
    notes = [] if requirements is None else add_requirements(contents, requirements, target, build)
    named = named_in(topology)
    found = follow(module, file, leave_out, named, WorkersPython.of(target), contents.has_module)
    packages, missing = packages_of(topology, found.multilang)
    notes += add_packages(contents, packages, target, leave_out, requirements)
    for name, (path, why) in found.files.items():
        if path.suffix != ".py" and not target.here:
            raise ShippingError(
                f"{path} ({why}) is compiled for this machine, and the jar is for Python {target.python}, "
                f"{target.platform_name}; build a wheel of it for that, and name it in the requirements"
            )
        contents.add_file(name, path, YOURS, why)
    for name, why in found.foreign.items():
        if not contents.has_module(name):
            raise ShippingError(
                f"{name!r}, {why}, is an installed package and not in the jar; name what brings it in a file for "
                f"--requirements, or, if the workers have it or never import it, give --leave-out {name}"
            )
    for name, why in found.missing.items():
        contents.warnings[
            f"{name!r}, {why}, is not installed here: if the workers import it, name what brings it in a file for --requirements"
        ] = None
    if topology.home is not None:  # its components open files there by relative names
        add_tree(contents, Path(home.root), home, "beside the components")
    for resources in home.resources:
        add_tree(contents, Path(resources), home, "in the topology's resources/")
    for path in include:
        add_tree(contents, path, home, "to be included")
    if not contents.has_module("ujson"):
        notes.append(add_ujson(contents, target))
    known = {*local_names(blob_map(topology)), *blobs}
    commands = ShippedCommands(topology, home, contents, interpreter, known, found.files)
    _add_stand_ins(contents, found.multilang)
    _add_ourselves(contents, found.multilang)
    contents.add(Item(LAUNCHER, _own("run_topology.py"), "launcher", "starts every task"))
    for script in commands.scripts:
        contents.add(Item(script, _own("run_command.py"), "launcher", "starts a program"))
    by_name = module.replace(".", "").isidentifier() and (
        file.name == "__init__.py" or f"{module}/__init__.py" not in contents
    )
    manifest = {
        "topology": f"{module if by_name else module + '.py'}:{attr}",
        "python": target.python,
        "platform": target.platform_name,
        # without ujson, which is checked separately because a worker may have its own
        "compiled": [item.name for item in contents if item.name.endswith(".so") and item.part != "ujson"],
        "submitted": submission(topology, [file.name], root=home.root),
        "commands": commands.scripts,
        "executable": sorted(contents.executables),  # a jar keeps no permissions
        "folders": sorted(contents.folders),  # a jar keeps no empty folders
    }
    text = json.dumps(manifest, indent=1, sort_keys=True) + "\n"
    contents.add(Item(MANIFEST, text.encode(), "launcher", "says where the topology is and what the jar is for"))
    modules = [package.module for package in packages if contents.has_module(package.top)]
    notes += list(contents.notes)
    return Shipment(
        topology, target, contents, commands.two, notes, leave_out, named, modules, commands.in_worker, missing
    )


def write(path: Path, data: bytes) -> None:
    """Write ``data`` to ``path``. A reader finds the old file or the whole new one."""
    try:
        private.replace_file(path, lambda handle: private.write_all(handle, data), 0o644)
    except OSError as error:
        raise ShippingError(f"{path} can't be written: {error.strerror or error}") from None


def _place(topology: Topology) -> tuple[str, Path, Path, str]:
    """Return the topology's module, its file, the folder that imports start from, and the topology's name."""
    place, _, attr = topology.require_origin().rpartition(":")
    if place.endswith(".py"):
        file = Path(place)
        return file.stem, file, file.parent, attr
    path = getattr(sys.modules.get(place), "__file__", None)
    if path is None or not Path(path).is_file():
        raise ShippingError(f"the topology's module {place!r} has no file to ship; load it from a .py file")
    file = Path(path)
    depth = place.count(".") + (file.name == "__init__.py")
    return place, file, file.parents[depth], attr


def _own(name: str) -> bytes:
    return Path(__file__).with_name(name).read_bytes()


def _add_stand_ins(contents: Contents, asked: set[str]) -> None:
    """Add the modules that stand in for other libraries, where a file imports one that is not in the jar.

    Scripts start in their own folder, and everything else at the jar's top.
    """
    for item in list(contents):
        if item.part != YOURS or not item.name.endswith(".py"):
            continue
        try:
            imports = imports_of(item.data, item.name)
        except ShippingError:
            continue  # for another Python, or no module
        folder, slash, _ = item.name.rpartition("/")
        folders = {"", f"{folder}{slash}"} if f"{folder}{slash}__init__.py" not in contents else {""}
        for name in {each.module.partition(".")[0] for each in imports if not each.level} & set(OTHER_LIBRARIES):
            if contents.has_module(name) or f"{folder}{slash}{name}.py" in contents:
                continue
            asked.add(f"multilang.compat.{name}")
            text = (Path(multilang.__file__).parent / "compat" / "standins" / f"{name}.py").read_bytes()
            for each in sorted(folders):
                part = YOURS if each else _OURS  # a folder belongs to one part
                contents.add(Item(f"{each}{name}.py", text, part, f"stands in for {name}"))


def _add_ourselves(contents: Contents, asked: set[str]) -> None:
    """Add this package: the parts that every component needs, those asked for, and those that these import."""
    home = Path(multilang.__file__).parent
    others = {path.name for path in home.iterdir() if path.is_dir()} - _FOR_CHILDREN
    bridge = _of_bridge(home.parent / "spark_bridge", asked)
    wanted: set[str] = set()
    waiting = {_part(name) for name in asked.union(*map(_imported, bridge))} & others
    while waiting:
        part = waiting.pop()
        wanted.add(part)
        for path in (home / part).rglob("*.py"):
            waiting |= ({_part(name) for name in _imported(path)} & others) - wanted
    for path in sorted([*home.rglob("*.py"), *home.rglob("*.json")]):
        name = path.relative_to(home)
        if name.parts[0] not in {*(others - wanted), "__main__.py"}:  # the command is not for tasks
            contents.add_file(f"multilang/{name.as_posix()}", path, _OURS, "runs the components")
    for path in bridge:
        name = path.relative_to(home.parent)
        contents.add_file(name.as_posix(), path, "spark_bridge", "reads partition sources")


def _of_bridge(bridge: Path, asked: set[str]) -> list[Path]:
    """Return the files with which a spout reads partition sources, if one is asked for.

    Files for the driver are left out.
    """
    names = {name.split(".")[1] for name in asked if name.startswith("spark_bridge.")}
    if not names and "spark_bridge" not in asked:
        return []
    found = [path for path in (bridge / "sources").glob("*.py") if path.stem not in ("live", "publish", "serve")]
    for spouts in (
        bridge / "replayable.py",
        bridge / "transactional.py",
    ):  # each needs further parts of multilang
        classes = re.findall(r"^class (\w+)", spouts.read_text(encoding="utf-8"), re.MULTILINE)
        if names & {spouts.stem, *classes}:
            found.append(spouts)
    return sorted([bridge / "__init__.py", bridge / "spout.py", *found])


def _imported(path: Path) -> set[str]:
    """Return the dotted names that a file imports."""
    imports = imports_of(path.read_bytes(), str(path))
    return {name for each in imports for name in (each.module, *(f"{each.module}.{name}" for name in each.names))}


def _part(name: str) -> str:
    """Return the part of this package that has a dotted name: ``local`` for ``multilang.LocalCluster``."""
    words = name.split(".")
    if len(words) < 2 or words[0] != "multilang":
        return ""
    home = home_of("multilang", words[1])
    return home.split(".")[1] if home is not None else words[1]


def merge(files: dict[str, bytes], other: Path) -> None:
    """Add the files of a jar.

    Args:
        files: Name -> content, of the jars before it.
        other: The jar.

    Raises:
        ShippingError: It can't be read, or has another class or file under a name that is there already.
    """
    try:
        with zipfile.ZipFile(other) as archive:
            for info in archive.infolist():
                if not info.is_dir() and _is_wanted(info.filename):
                    _add(files, info.filename, archive.read(info), other)
    except (OSError, zipfile.BadZipFile) as error:
        raise ShippingError(f"{other} is not a jar that can be read: {error}") from None


def _is_wanted(name: str) -> bool:
    upper = name.upper()
    if name.startswith(RESOURCES) or upper == "META-INF/MANIFEST.MF" or name.rpartition("/")[2] == "module-info.class":
        return False
    return not (upper.startswith(_META) and upper.endswith(_SIGNED))


def _add(files: dict[str, bytes], name: str, data: bytes, other: Path) -> None:
    there = files.setdefault(name, data)
    if there == data:
        return
    if name.startswith(_SERVICES):
        lines = dict.fromkeys(line for each in (there, data) for line in each.splitlines() if line.strip())
        files[name] = b"".join(line + b"\n" for line in lines)
    elif not name.startswith(_META) and not ("/" not in name and name.upper().startswith(_LEGAL)):
        raise ShippingError(f"two jars have the file {name!r}, {other} and one before it; leave one out")
