"""Storm's Thrift types, which thriftpy2 makes from the IDL beside this file."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from multilang.shipping.errors import NimbusError

IDL = Path(__file__).with_name("nimbus.thrift")


@cache
def types() -> Any:
    """Return a module with a class for each struct, exception and service.

    Raises NimbusError without the extra ``storm``.
    """
    try:
        import thriftpy2
    except ModuleNotFoundError as error:
        raise NimbusError(
            f"talking to Nimbus needs the package {error.name}; install the extra: pip install 'storm-multilang[storm]'"
        ) from None
    return thriftpy2.load(str(IDL), module_name="multilang_nimbus_thrift")
