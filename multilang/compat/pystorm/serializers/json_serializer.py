"""Messages as JSON, each followed by a line with ``end``."""

from __future__ import annotations

import io
import json
import logging

from multilang.compat.pystorm.exceptions import StormWentAwayError
from multilang.compat.pystorm.serializers.serializer import Serializer
from multilang.compat.values import as_simplejson_sends

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

log = logging.getLogger("pystorm.serializers.json_serializer")


class JSONSerializer(Serializer):
    """Reads and writes JSON in UTF-8; see Serializer."""

    def __init__(self, input_stream: Any, output_stream: Any, reader_lock: Any, writer_lock: Any) -> None:
        super().__init__(self._wrap_stream(input_stream), self._wrap_stream(output_stream), reader_lock, writer_lock)

    @staticmethod
    def _wrap_stream(stream: Any) -> Any:
        return io.TextIOWrapper(getattr(stream, "buffer", stream), encoding="utf-8")

    def read_message(self) -> Any:
        lines: list[str] = []
        while True:
            with self._reader_lock:
                line = self.input_stream.readline()
            if not line:
                raise StormWentAwayError
            if line == "end\n":
                break
            if line != "\n":
                lines.append(line)
        try:
            return json.loads("".join(lines))
        except ValueError:
            log.exception("JSON decode error for message: %r", "".join(lines))
            raise

    def serialize_dict(self, msg_dict: Any) -> str:
        return json.dumps(as_simplejson_sends(msg_dict), allow_nan=False) + "\nend\n"
