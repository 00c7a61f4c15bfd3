"""Storm's Thrift types, which thriftpy2 makes from the IDL beside this file."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from multilang.helpers.extras import imported
from multilang.shipping.errors import ShippingError

IDL = Path(__file__).with_name("nimbus.thrift")


@cache
def types() -> Any:
    """Return a module with a class for each struct, exception and service.

    Raises ShippingError without the extra ``storm``.
    """
    thriftpy2 = imported("thriftpy2", "storm", "talking to Nimbus", error=ShippingError)
    return thriftpy2.load(str(IDL), module_name="multilang_nimbus_thrift")
