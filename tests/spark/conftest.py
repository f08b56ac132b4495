from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from skep import Queue
from skep.spark import session
from skep.spark.at import store_at
from skep.store.sync import Store


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


@pytest.fixture
def store(skep_url: str) -> Iterator[Store]:
    store = store_at(skep_url)
    yield store
    store.close()


@pytest.fixture
def mail(skep_url: str) -> Iterator[Queue]:
    with Queue("mail") as queue:
        yield queue
