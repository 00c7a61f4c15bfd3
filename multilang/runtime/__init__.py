"""What every engine needs to run a topology's tasks: plans and routes, collectors, tuples, counters, clocks, children.

The embedded cluster (``multilang.local``) and Spark (``spark_bridge``) stand on it, and know nothing of each other.
"""
