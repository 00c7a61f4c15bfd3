"""Sets this process's clock back, an hour for each process that was started before it; $CLOCK counts them."""

import os
import time

_true = time.time
_fd = os.open(os.environ["CLOCK"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
os.write(_fd, b".")
_back = 3600.0 * os.fstat(_fd).st_size
os.close(_fd)
time.time = lambda: _true() - _back
