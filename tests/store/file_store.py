"""A database of one's own: a JSON file for each place, and one lock."""

import fcntl
import json
import os
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from multilang.store import StateError, Store


class FileStore(Store):
    """Rows in the files of a folder. Its URL is ``files.FileStore:/var/lib/shop``."""

    local = True

    def __init__(self, url, conf=None, setting="multilang.store"):
        super().__init__(url, conf, setting)
        self.folder = Path(url.partition(":")[2])

    def get(self, place, table, keys):
        rows = self._read(place).get(table, {})
        return [rows.get(key) for key in keys]

    def list(self, place, table):
        yield from self._read(place).get(table, {}).items()

    def places(self, start):
        with self._errors():
            found = [json.loads(file.read_bytes()) for file in self.folder.glob("*.json")]
            return [each["place"] for each in found if each["place"].startswith(start) and any(each["tables"].values())]

    def tables(self, place):
        return [name for name, rows in self._read(place).items() if rows]

    def compare_and_write(self, place, expected, changes, cleared=(), merged=None):
        self.trace("write")
        with self._locked():
            tables = self._read(place)
            for table, rows in expected.items():
                if any(tables.get(table, {}).get(key) != value for key, value in rows.items()):
                    return False
            for table in cleared:
                tables.pop(table, None)
            if merged is not None:
                source, target = merged
                put(tables, target, {key: value or None for key, value in tables.pop(source, {}).items()})
            for table, rows in changes.items():
                put(tables, table, rows)
            self._write(place, tables)
        self.trace("synced")
        return True

    def describe(self):
        return f"the folder {self.folder}"

    @contextmanager
    def _locked(self):
        """Hold the lock of a step. If a process dies in a step, its lock is released."""
        with self._errors():
            self.folder.mkdir(parents=True, exist_ok=True)
            with open(self.folder / "lock", "w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                yield

    @contextmanager
    def _errors(self):
        try:
            yield
        except OSError as error:
            raise StateError(f"{self.describe()} can't be used: {error}") from None

    def _file(self, place):
        return self.folder / f"{sha256(place.encode()).hexdigest()}.json"  # a place's name may be none of a file

    def _read(self, place):
        with self._errors():
            try:
                tables = json.loads(self._file(place).read_bytes())["tables"]
            except FileNotFoundError:
                return {}
        return {
            name: {key.encode("latin-1"): value.encode("latin-1") for key, value in rows.items()}
            for name, rows in tables.items()
        }

    def _write(self, place, tables):
        texts = {
            name: {key.decode("latin-1"): value.decode("latin-1") for key, value in rows.items()}
            for name, rows in tables.items()
        }
        part = self.folder / "part"
        with open(part, "w") as file:
            json.dump({"place": place, "tables": texts}, file)
            file.flush()
            os.fsync(file.fileno())
        self.trace("sync")
        os.replace(part, self._file(place))  # the whole new file, or the old one
        folder = os.open(self.folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def put(tables, table, rows):
    """Change rows of a table. None: the row is removed."""
    merged = {**tables.get(table, {}), **rows}
    tables[table] = {key: value for key, value in merged.items() if value is not None}
