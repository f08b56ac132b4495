"""The data pipeline on PySpark: a session, the format `skep`, and the tables that events become."""

from __future__ import annotations

from pyspark.sql import SparkSession

from skep.spark.session import session
from skep.spark.source import SkepSource
from skep.spark.tables import jobs, metrics, runs
from skep.spark.writer import written

__all__ = ["session", "register", "written", "runs", "jobs", "metrics"]


def register(spark: SparkSession) -> None:
    """Makes the format `skep` known to a session that does not find it by itself."""
    spark.dataSource.register(SkepSource)
