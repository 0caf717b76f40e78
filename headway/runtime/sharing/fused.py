"""Panes with one exchange: both aggregations in one stage, verified at every start."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from headway.errors import HeadwayError, InputError
from headway.runtime.sharing.aggregates import quoted
from headway.runtime.sharing.first_start import hold_against_first_start
from headway.runtime.sharing.panes import WindowQuery, finished, merged, partials

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

STRICT_KEY = "spark.sql.streaming.statefulOperator.useStrictDistribution"
_EXCHANGE = re.compile(
    r"Exchange (\w+(?:\(.*\))?),? (?=REQUIRED_BY|REPARTITION_BY|ENSURE_REQ|\[plan_id)"
)


def fused(df: DataFrame, query: WindowQuery, checkpoint: str | None) -> DataFrame:
    """Rows partitioned by key once; panes and windows are then counted in the same tasks.

    Raises
    ------
    InputError
        If no checkpoint is given for a stream, or there is no key.
    HeadwayError
        If Spark does not plan one exchange, or the query is not that of the first start, since its
        state would not be found.
    """
    if not query.key:
        raise InputError("how='fused' distributes rows by key; expected at least one key column")
    spark = df.sparkSession
    if df.isStreaming and checkpoint is None:
        raise InputError(
            "how='fused' needs checkpoint=..., the folder that the query will be started with: "
            "its plan is kept there and compared at every start"
        )
    if df.isStreaming:
        spark.conf.set(STRICT_KEY, "false")
    shuffle_partitions = int(spark.conf.get("spark.sql.shuffle.partitions") or "200")
    repartitioned = df.repartition(shuffle_partitions, *map(quoted, query.key))
    windows = finished(merged(partials(repartitioned, query), query), query, df)
    if df.isStreaming and checkpoint is not None:
        exchanges = exchanges_of(windows)
        _require_one(exchanges)
        hold_against_first_start(df, query, "fused", checkpoint, exchanges)
    return windows


def exchanges_of(df: DataFrame) -> list[str]:
    """Shuffles of a query's plan, with their partitioning columns, without column numbers."""
    text = str(
        df.sparkSession._jvm.org.apache.spark.sql.api.python.PythonSQLUtils.explainString(  # type: ignore[union-attr]
            df._jdf.queryExecution(), "simple"
        )
    )
    return exchanges_in(text)


def exchanges_in(plan: str) -> list[str]:
    """Shuffles in the text of a physical plan.

    Examples
    --------
    >>> exchanges_in("+- Exchange hashpartitioning(area#12, 4), REPARTITION_BY_NUM, [plan_id=1]")
    ['hashpartitioning(area, 4)']
    >>> exchanges_in("+- Exchange SinglePartition, REPARTITION_BY_NUM, [plan_id=1]")
    ['SinglePartition']
    """
    return [re.sub(r"#\d+L?|-T\d+ms", "", exchange) for exchange in _EXCHANGE.findall(plan)]


def _require_one(exchanges: list[str]) -> None:
    if len(exchanges) != 1:
        raise HeadwayError(
            f"how='fused': Spark plans {len(exchanges)} exchanges ({'; '.join(exchanges)}) where "
            "one was expected; use how='panes'"
        )
