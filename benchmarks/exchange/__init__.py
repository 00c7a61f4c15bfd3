"""Word count with its tuples in blocks, against the same tuple by tuple: `python -m benchmarks.exchange`."""
