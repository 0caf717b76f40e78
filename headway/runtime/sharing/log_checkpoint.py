"""What a log of windows takes from its stream's checkpoint: Spark's watermark, and its identity."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from headway.errors import HeadwayError, InputError
from headway.runtime.sharing.files import Files
from headway.runtime.sharing.log_state import LogState
from headway.runtime.sharing.panes import WATERMARK

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def marked(
    df: DataFrame, time: str, delay_ms: int | None, *, is_early: bool
) -> tuple[DataFrame, int]:
    """The stream with a watermark on ``time``, and the delay of that watermark. [ms]"""
    stated = df.schema[time].metadata.get(WATERMARK)
    if stated is None:
        if delay_ms is None:
            raise InputError(
                "delay: none given; expected e.g. delay='10 seconds', or withWatermark"
            )
        df = df.withWatermark(time, f"{delay_ms} milliseconds")
        stated = delay_ms
    elif delay_ms not in (None, int(stated)):
        raise InputError(
            f"delay: the stream already has a watermark {int(stated)} ms behind {time}, and delay "
            f"is {delay_ms} ms; leave out one of them"
        )
    num_watermarks = _num_watermarks(df._jdf.queryExecution().analyzed())
    if is_early and num_watermarks > 1:
        raise InputError(
            f"emit='early': the stream has {num_watermarks} watermarks, and which of them counts "
            "Spark states only in the next batch; use emit='exact'"
        )
    return df, int(stated)


def _num_watermarks(plan: Any) -> int:
    parts = plan.children()
    below = sum(_num_watermarks(parts.apply(index)) for index in range(parts.size()))
    return below + int(plan.nodeName() == "EventTimeWatermark")


def watermark_of(files: Files, checkpoint: str, batch: int) -> int:
    """Spark's watermark for a batch, which it writes before the batch. [ms]"""
    path = f"{checkpoint}/offsets/{batch}"
    for line in files.read(path).splitlines():
        if line.startswith("{") and '"batchWatermarkMs"' in line:
            return int(json.loads(line)["batchWatermarkMs"])
    raise HeadwayError(f"{path}: no watermark of the batch; expected Spark's offset log")


def query_id_of(files: Files, checkpoint: str) -> str:
    """Spark's identity of the query whose checkpoint this is; empty before its first start."""
    path = f"{checkpoint}/metadata"
    if not files.exists(path):
        return ""
    try:
        return str(json.loads(files.read(path))["id"])
    except (ValueError, KeyError, TypeError):
        raise InputError(
            f"{path}: not the metadata of a query; expected the checkpoint of a streaming query, "
            "undamaged"
        ) from None


def require_matching(files: Files, checkpoint: str, store: str, state: LogState) -> None:
    """Refuse a store and a checkpoint of different queries, or of different times.

    A batch is committed in the store first. The checkpoint is thus at the same batch or one behind;
    otherwise, batches would be skipped, or rows missing.
    """
    numbers = [name for name in files.names(f"{checkpoint}/commits") if name.isdigit()]
    committed = max(map(int, numbers), default=-1)
    query_id = query_id_of(files, checkpoint)
    if state.batch >= 0 and (not query_id or state.query_id != query_id):
        raise HeadwayError(
            f"{store}: filled up to batch {state.batch} with another checkpoint than "
            f"{checkpoint}; start with that one, or with a new store and a new checkpoint"
        )
    if not committed <= state.batch <= committed + 1:
        filled = "empty" if state.batch < 0 else f"filled up to batch {state.batch}"
        raise HeadwayError(
            f"{store}: {filled}, while the last batch that {checkpoint} has committed is "
            f"{committed if numbers else 'none'}: one of them is not the latest, and rows would be "
            "missing or skipped. Start with a new store and a new checkpoint"
        )
