"""``multilang state``: what outlives a process, that of a topology or of a whole store."""

from __future__ import annotations

import json
import shlex
import sys
from contextlib import ExitStack, closing, contextmanager
from itertools import groupby
from operator import itemgetter
from typing import IO, TYPE_CHECKING, Any

import click

from multilang.cli import exits
from multilang.cli.arguments import PROJECT_ENVIRONMENT, conf_option
from multilang.cli.loading import load
from multilang.cli.output import echo, echo_document
from multilang.cli.settings import LookingCommand, ProjectCommand
from multilang.component.errors import ConfigError
from multilang.component.wrapper import innermost
from multilang.helpers import private
from multilang.loading.topologies import load_object
from multilang.state.admin import StoredStates
from multilang.state.positions import positions_url
from multilang.state.serializers import as_key, check_key
from multilang.store import admin
from multilang.store.claims import wait_until_free
from multilang.store.errors import StateError
from multilang.store.opening import is_url, open_store
from multilang.store.settings import place_of, stored_name
from multilang.topology.search_path import add_current_folder
from multilang.transactional.maps.base import maps_of
from multilang.transactional.names import ID
from multilang.transactional.stores import store_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from multilang.store.admin import Entry
    from multilang.store.interface import Store
    from multilang.topology.model import Topology

CONF = conf_option("A conf entry, as the topology is run with; VALUE is JSON or text.")


@click.group()
def state() -> None:
    """Show and move what outlives a process: states, positions, transactions and maps.

    WHERE is a topology, whose conf names where its states are, in a project with that of its file; or the URL of a store, as in
    multilang.store, of which all is meant. While a topology runs, only ls and get can be used, and these need the topology,
    whose code they run; the others take that of a project.
    """


@state.command("ls", cls=LookingCommand)
@click.argument("topology", metavar="WHERE")
@CONF
@PROJECT_ENVIRONMENT
@click.option("--json", "as_json", is_flag=True, help="As one JSON document.")
def list_states(topology: str, conf: dict[str, Any], as_json: bool) -> int:
    """Show what is stored.

    Of a topology: its tasks with the keys and transactions of their states, and the places of its positions, transactions, maps and
    marks. Of a URL: all places with their rows.
    """
    if _is_url(topology):
        return _list_places(topology, conf, as_json)
    with _opened(topology, conf) as stored:
        txid, how = stored.position() if stored.provider.namespaces() else (None, "")
        rows = [
            {"namespace": name, "keys": stored.size(name), "committed": txids[0], "prepared": txids[1]}
            for name in stored.namespaces()
            for txids in [stored.txids(name)]
        ]
        where = stored.provider.describe()
        with _open_places(stored.topology, stored.conf) as opened:
            others = {place.place: (store.describe(), place) for store, place in opened}
    if as_json:
        places = [{"where": there, **_as_json(place)} for there, place in others.values()]
        echo(json.dumps({"where": where, "txid": txid, "state": how, "namespaces": rows, "places": places}))
        return exits.OK
    echo(where)
    if not rows:
        echo("nothing is stored" if not others else "no state is stored")
        _show(others.values())
        return exits.OK
    echo(f"transaction {txid}: {how.lower()}")
    width = max(len(str(row["namespace"])) for row in rows)
    for row in rows:
        open_one = "" if row["prepared"] == row["committed"] else f", {row['prepared']} is prepared"
        echo(f"  {row['namespace']:{width}}  {row['keys']:>9,} keys, {row['committed']} is committed{open_one}")
    _show(others.values())
    return exits.OK


@state.command(cls=LookingCommand)
@click.argument("topology", metavar="WHERE")
@click.argument("component", metavar="NAME")
@click.argument("key")
@CONF
@PROJECT_ENVIRONMENT
def get(topology: str, component: str, key: str, conf: dict[str, Any]) -> int:
    """Show the value of a key, as JSON. NAME is a component of the topology, or a place that ls shows.

    KEY is the text as it is, a number, or a JSON list for a tuple: '["a", 1]'. Exit status 1 when nothing has that key.
    """
    if _is_url(topology):
        with _store(topology, conf) as store:
            return _show_row(store, component, key)
    with _opened(topology, conf) as stored:
        with _open_places(stored.topology, stored.conf) as opened:
            for store, place in opened:
                if place.place == component:
                    return _show_row(store, component, key)
        stored.topology[component]
        values = (stored.get(component, each) for each in _meanings(key))
        value = next((each for each in values if each is not None), None)
        there = [] if value is not None else stored.some_keys(component, 5)
    if value is None:
        others = f"it has {', '.join(map(_typed, there))} ..." if there else "nothing of it is stored"
        echo(f"no task of {component!r} has the key {key!r}; {others}", err=True)
        return 1
    echo_document(value)
    return exits.OK


@state.command(cls=ProjectCommand)
@click.argument("topology", metavar="WHERE")
@click.option("-o", "--output", metavar="FILE", help="The file to write; standard output unless given.")
@CONF
@PROJECT_ENVIRONMENT
def export(topology: str, output: str | None, conf: dict[str, Any]) -> int:
    """Write all committed states of a topology, or all rows of a store, as lines of JSON."""
    with ExitStack() as opened:
        if _is_url(topology):
            lines = admin.export(opened.enter_context(_store(topology, conf)))
        else:
            lines = opened.enter_context(_opened(topology, conf)).export()
        if output is None:
            count = _write(lines, sys.stdout)
        else:
            try:
                count = private.replace_file(output, lambda handle: _write_to(lines, handle))
            except OSError as error:
                raise click.UsageError(f"{output} can't be written: {error.strerror or error}") from error
    echo(f"{count:,} keys", err=True)
    return exits.OK


@state.command("import", cls=ProjectCommand)
@click.argument("topology", metavar="WHERE")
@click.argument("file", type=click.File(encoding="utf-8"))
@click.option("--replace", is_flag=True, help="Replace everything that is stored.")
@CONF
@PROJECT_ENVIRONMENT
def import_states(topology: str, file: IO[str], replace: bool, conf: dict[str, Any]) -> int:
    """Store what export wrote (-: the standard input).

    The states of a topology are stored all or, after an error, not at all. The rows of a store go to places that have none.
    """
    with ExitStack() as opened:
        try:
            if _is_url(topology):
                store = opened.enter_context(_store(topology, conf))
                count, where = admin.load(store, _lines(file)), store.describe()
            else:
                stored = opened.enter_context(_opened(topology, conf))
                count, where = stored.load(_lines(file), replace), stored.provider.describe()
        except UnicodeDecodeError as problem:
            raise StateError(f"{file.name} is not text in UTF-8 ({problem}), which state export writes") from None
        echo(f"{count:,} keys in {where}")
    return exits.OK


@state.command(cls=ProjectCommand)
@click.argument("topology")
@click.argument("component")
@click.argument("tasks", type=click.IntRange(min=1))
@click.option(
    "--key",
    "function",
    metavar="MODULE:FUNCTION",
    help="A function of a key and its value that returns the values of the grouping's fields.",
)
@CONF
@PROJECT_ENVIRONMENT
def reshard(topology: str, component: str, tasks: int, function: str | None, conf: dict[str, Any]) -> int:
    """Divide a component's keys among another number of tasks, as its fields grouping will.

    All of it is moved or, after a crash, nothing. Then start the topology with that parallelism.
    """
    values_of: Callable[[Any, Any], Any] | None = None
    with _opened(topology, conf) as stored:
        stored.topology[component]
        if function is not None:
            values_of = load_object(function)
        moved = stored.reshard(component, tasks, values_of)
    echo(f"{component!r} has {tasks} tasks now; {moved:,} keys moved")
    return exits.OK


@state.command(cls=ProjectCommand)
@click.argument("topology")
@click.argument("old")
@click.argument("new")
@CONF
@PROJECT_ENVIRONMENT
def rename(topology: str, old: str, new: str, conf: dict[str, Any]) -> int:
    """Give what is stored of the component OLD to the component NEW, which OLD is called now."""
    with _opened(topology, conf) as stored:
        count = stored.rename(old, new)
    echo(f"what {count} tasks of {old!r} had stored is that of {new!r} now")
    return exits.OK


@state.command("rm", cls=ProjectCommand)
@click.argument("topology", metavar="WHERE")
@click.argument("component", metavar="NAME")
@CONF
@PROJECT_ENVIRONMENT
def remove(topology: str, component: str, conf: dict[str, Any]) -> int:
    """Remove what is stored of a component, its state or its position; or a place that ls shows, with those below it."""
    if _is_url(topology):
        with _store(topology, conf) as store:
            admin.remove(store, component)
        echo(f"{component!r} is removed from the store, with what is below it")
        return exits.OK
    with _opened(topology, conf) as stored:
        with _open_places(stored.topology, stored.conf) as opened:
            found = next((store for store, place in opened if place.place == component), None)
            if found is not None:
                for store, place in opened:  # a map has no owner but that of the transactions
                    wait_until_free(store, place.place, None, what=place.place)
                admin.remove(found, component)
                echo(f"{component!r} is removed from {found.describe()}")
                return exits.OK
        count = stored.remove(component)
    echo(f"what {count} tasks of {component!r} had stored is removed")
    return exits.OK


@state.command(cls=ProjectCommand)
@click.argument("topology")
@CONF
@PROJECT_ENVIRONMENT
def accept(topology: str, conf: dict[str, Any]) -> int:
    """Accept a topology of another alignment or other groupings, so that it continues with what is stored.

    If the alignment is another one, the positions of its sources are removed: they begin at the beginning. A state
    that is older than its sources' positions, or not the one that they belong to, stays as it is, without what came between.
    """
    with _opened(topology, conf) as stored:
        accepted = stored.accept()
    for text in accepted:
        echo(f"accepted: {text}")
    if not accepted:
        echo("what is stored was written by a topology of this shape")
    return exits.OK


@contextmanager
def _opened(topology: str, conf: dict[str, Any]) -> Iterator[StoredStates]:
    loaded = load(topology)
    try:
        stored = StoredStates(loaded, conf)
        try:
            yield stored
        finally:
            stored.close()
    except (StateError, ConfigError) as error:
        raise click.UsageError(str(error)) from error


@contextmanager
def _store(url: str, conf: dict[str, Any]) -> Iterator[Store]:
    try:
        with closing(open_store(url, conf, "WHERE")) as store:
            store.check()
            yield store
    except (StateError, ConfigError) as error:
        raise click.UsageError(str(error)) from error


def _is_url(where: str) -> bool:
    if not where.partition(":")[0].endswith(".py"):
        add_current_folder()  # where the class of a user's store may be
    return is_url(where)


def _list_places(url: str, conf: dict[str, Any], as_json: bool) -> int:
    with _store(url, conf) as store:
        where, found = store.describe(), [*admin.entries(store)]
    if as_json:
        echo(json.dumps({"where": where, "places": [*map(_as_json, found)]}))
    elif found:
        _show((where, each) for each in found)
    else:
        echo(f"{where}\nnothing is stored")
    return exits.OK


def _as_json(place: Entry) -> dict[str, Any]:
    return {"place": place.place, "rows": place.rows, "used": place.is_used}


def _show(places: Iterable[tuple[str, Entry]]) -> None:
    """Print places, each with its rows, below the store that they are in."""
    for where, found in groupby(sorted(places, key=itemgetter(0)), itemgetter(0)):
        echo(where.removeprefix("the "))
        each = [place for _, place in found]
        width = max(len(place.place) for place in each)
        for place in each:
            rows = ", ".join(f"{count:,} in {table}" for table, count in place.rows.items())
            used = f"in use by {place.owner}" if place.is_used else ""
            echo(f"  {place.place:{width}}  {'; '.join(filter(None, (rows, used))) or 'nothing'}")


def _show_row(store: Store, place: str, key: str) -> int:
    found = [*admin.found(store, place, key.encode())] or [*admin.found(store, place, json.dumps(key).encode())]
    for table, value in found:
        echo(f"{table}: {value.decode('utf-8', 'backslashreplace')}")
    if not found:
        echo(f"{place!r} in {store.describe()} has no key {key!r}", err=True)
        return 1
    return exits.OK


def _write_to(lines: Iterator[dict[str, Any]], handle: int) -> int:
    with open(handle, "w", encoding="utf-8", closefd=False) as file:
        return _write(lines, file)


def _write(lines: Iterator[dict[str, Any]], file: IO[str]) -> int:
    count = -1  # the header
    for line in lines:
        file.write(f"{json.dumps(line, ensure_ascii=False)}\n")
        count += 1
    return count


def _lines(file: IO[str]) -> Iterator[dict[str, Any]]:
    for number, text in enumerate(file, 1):
        try:
            line = json.loads(text)
        except ValueError as problem:
            raise StateError(f"line {number} is not JSON: {problem}") from None
        if not isinstance(line, dict):
            raise StateError(f"line {number} is not an object")
        yield line


def _meanings(text: str) -> list[Any]:
    """Return the keys that may be meant: the text as JSON, and the text itself."""
    try:
        key = as_key(json.loads(text))
        check_key(key)
    except (ValueError, TypeError):
        return [text]
    return [key, text]


def _typed(key: Any) -> str:
    """Return a key as it is written in a shell."""
    return shlex.quote(key if isinstance(key, str) else json.dumps(key, ensure_ascii=False))


@contextmanager
def _open_places(topology: Topology, conf: Mapping[str, Any]) -> Iterator[list[tuple[Store, Entry]]]:
    """Give the places of a topology's positions, transactions, maps and marks of sources, each with its store, open.

    Args:
        topology: The topology.
        conf: Its conf, with what a run would add to it.
    """
    with ExitStack() as opened:
        found: dict[tuple[str, str], tuple[Store, Entry]] = {}
        for store, start in _starts(topology, conf, opened):
            for entry in admin.entries(store, start):
                found.setdefault((store.describe(), entry.place), (store, entry))
        yield [*found.values()]


def _starts(topology: Topology, conf: Mapping[str, Any], opened: ExitStack) -> Iterator[tuple[Store, str]]:
    name = stored_name(conf)
    for spec in topology.components.values():
        own = {**conf, **spec.conf}
        url = positions_url(own) if spec.kind == "spout" else None
        if url is not None:
            yield opened.enter_context(closing(open_store(url[0], own, url[1]))), place_of("position", name)
        if own.get(ID) is not None:
            url = store_of(own)
            yield opened.enter_context(closing(open_store(url[0], own, url[1]))), place_of("transactions", str(own[ID]))
        for found in maps_of(innermost(spec.component)):
            yield found.backing.store, place_of("map", found.backing.name)
        marks = getattr(innermost(spec.component), "kept_marks", None)
        where = None if marks is None else marks(own, spec.id)
        if where is not None:
            yield opened.enter_context(closing(where[0])), where[1]
