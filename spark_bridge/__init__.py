"""RDD partitions as replayable spout sources, and topologies run as Spark jobs.

The only package of storm-multilang that may import pyspark (extra ``spark``).
"""
