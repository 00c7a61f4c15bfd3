"""The name storm for storm-multilang's layer, or for another storm where one is installed."""

import os
import sys

_folder = os.path.dirname(os.path.abspath(__file__))
while not os.path.isfile(os.path.join(_folder, "multilang", "__init__.py")) and _folder != os.path.dirname(_folder):
    _folder = os.path.dirname(_folder)
if _folder not in sys.path and _folder != os.path.dirname(_folder):
    sys.path.append(_folder)

from multilang.compat.names import stand_in  # noqa: E402 - found by the path above

stand_in(__name__, __file__)
