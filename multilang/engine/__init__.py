"""The machinery that every engine needs: plans and routes, collectors, tuples, counters, clocks, child processes.

The embedded cluster (``multilang.local``) and Spark (``spark_bridge``) are built on it, independently of each other.
"""
