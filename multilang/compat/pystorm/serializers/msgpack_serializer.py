"""The msgpack serializer, which is refused."""

from __future__ import annotations

from multilang.compat.pystorm.serializers.serializer import Serializer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

REFUSED = (
    'the serializer "msgpack" is not supported: it needs a Java class on the workers that speaks msgpack, and JSON is faster '
    'here; write serializer="json", and remove topology.multilang.serializer from the conf'
)


class MsgpackSerializer(Serializer):
    """A serializer that can't be made; importing its name does no harm."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise ValueError(REFUSED)
