"""The base of serializers."""

from __future__ import annotations

import logging

from multilang.compat.pystorm.exceptions import StormWentAwayError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

log = logging.getLogger("pystorm.serializers.serializer")


class Serializer:
    """Reads and writes messages over two streams.

    Args:
        input_stream: The stream that messages are read from.
        output_stream: The stream that messages are written to.
        reader_lock: A lock that is held while a line is read.
        writer_lock: A lock that is held while a message is written.
    """

    def __init__(self, input_stream: Any, output_stream: Any, reader_lock: Any, writer_lock: Any) -> None:
        self._reader_lock = reader_lock
        self._writer_lock = writer_lock
        self.input_stream = input_stream
        self.output_stream = output_stream

    def read_message(self) -> Any:
        """Return the next message.

        Raises:
            StormWentAwayError: The input has ended.
        """
        raise NotImplementedError

    def send_message(self, msg_dict: Any) -> None:
        """Write a message; one that can't be encoded is logged instead, as in pystorm.

        Raises:
            StormWentAwayError: Nobody reads the output any more.
        """
        with self._writer_lock:
            try:
                self.output_stream.flush()
                self.output_stream.write(self.serialize_dict(msg_dict))
                self.output_stream.flush()
            except OSError:
                raise StormWentAwayError from None
            except Exception:
                log.exception("Failed to send message: %r", msg_dict)

    def serialize_dict(self, msg_dict: Any) -> Any:
        """Return the message as it is written."""
        raise NotImplementedError
