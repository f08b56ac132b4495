from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from skep.spark import session


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One for the whole run. The first compiler alone is enough for so few rows, and ready sooner."""
    made = session(
        "local[2]",
        **{
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
            "spark.sql.codegen.wholeStage": "false",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        },
    )
    yield made
    made.stop()
