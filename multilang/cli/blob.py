"""``multilang blob``: the files of a cluster's blob store."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from multilang.cli import exits
from multilang.cli.nimbus import NIMBUS, connected
from multilang.cli.output import echo
from multilang.shipping import blobs


@click.group()
def blob() -> None:
    """Put files into a cluster's blob store, from which workers get them."""


@blob.command()
@click.argument("key")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@NIMBUS
@click.option("--replication", type=click.IntRange(min=1), default=1, show_default=True, help="Copies in the store.")
@click.option(
    "--acl",
    multiple=True,
    metavar="RIGHTS",
    help="Further users of a new key: u:NAME:rwa (a user) or o::r (others). Its owner has all rights.",
)
def put(key: str, file: Path, where: str | None, replication: int, acl: tuple[str, ...]) -> int:
    """Store a file under a key, in the place of an earlier one.

    Running topologies that map the key get the new file. A worker finds it unpacked if the topology asks for that and
    the KEY ends as an archive's name does, such as env.tgz.
    """
    with connected(where) as nimbus:
        created = blobs.put_blob(nimbus, key, file, replication, acl)
    echo(f"{key}: {file.stat().st_size:,} bytes, {'new' if created else 'updated'}")
    return exits.OK


@blob.command("ls")
@NIMBUS
def list_keys(where: str | None) -> int:
    """Show the keys, one a line, with those of the topologies' own jars and conf."""
    with connected(where) as nimbus:
        keys = blobs.list_blobs(nimbus)
    for key in keys:
        echo(key)
    return exits.OK


@blob.command()
@click.argument("keys", nargs=-1, required=True, metavar="KEY...")
@NIMBUS
def rm(keys: tuple[str, ...], where: str | None) -> int:
    """Delete keys."""
    with connected(where) as nimbus:
        for key in keys:
            blobs.delete_blob(nimbus, key)
    return exits.OK


@blob.command()
@click.argument("key")
@NIMBUS
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="A file; standard output unless given."
)
def cat(key: str, where: str | None, output: Path | None) -> int:
    """Show the file that is stored under a key."""
    with connected(where) as nimbus:
        if output is None:
            for piece in blobs.read_blob(nimbus, key):
                sys.stdout.buffer.write(piece)
        else:
            echo(f"{output}: {blobs.save_blob(nimbus, key, output):,} bytes")
    return exits.OK
