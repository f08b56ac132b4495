"""Spark takes the `DefaultSource` of modules called `pyspark_*`: so `format("skep")` needs no registration."""

from skep.spark.source import SkepSource as DefaultSource

__all__ = ["DefaultSource"]
