"""State of a log of partial windows after each batch, and what it takes from Spark's checkpoint."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from headway.domain.window_set import WindowSpec
from headway.errors import HeadwayError, InputError
from headway.formats.codec import STATE, noun_of
from headway.formats.own_files import parse_json
from headway.runtime.sharing.files import SparkFiles
from headway.runtime.sharing.panes import WATERMARK

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_FORMAT = "headway.windows/v2"


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What the partial results of a store are of; its first batch fixes it.

    ``key`` has names and types, ``aggregates`` names and SQL texts, ``columns`` the partial results
    and their types.
    """

    time: str
    key: tuple[tuple[str, str], ...]
    aggregates: tuple[tuple[str, str], ...]
    columns: tuple[tuple[str, str], ...]

    def require_same(self, now: Contents, store: str) -> None:
        """Refuse other keys or aggregates, whose partial results would be mixed with these."""
        for part_name, before, after in (
            ("time column", self.time, now.time),
            ("key", _listed(self.key, " "), _listed(now.key, " ")),
            ("aggregates", _listed(self.aggregates, " = "), _listed(now.aggregates, " = ")),
            ("partial results", _listed(self.columns, " "), _listed(now.columns, " ")),
        ):
            if before != after:
                raise InputError(
                    f"{store}: the {part_name} of the store: {before}; this log has: {after}. "
                    "Partial results of both cannot be merged: start as before, or with a new "
                    "store and a new checkpoint"
                )


def _listed(pairs: tuple[tuple[str, str], ...], between: str) -> str:
    return ", ".join(f"{name}{between}{text}" for name, text in pairs) or "none"


Part: TypeAlias = tuple[str, int]
"""Partial results in the store: the folder, and the last batch with rows in it."""
ReaderWindows: TypeAlias = Mapping[WindowSpec, int | None]
"""The windows of a consumer of the log, each with the earliest start that it may get."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogState:
    """The log after a batch: everything that the next one, or a restart, needs.

    Windows that end at or before ``closed_ms`` were emitted and get no more rows. ``readers`` are
    by name, ``panes`` by start, ``pieces`` (windows from which larger ones are merged) by size and
    end. ``query_id`` is Spark's, of the checkpoint that belongs to the store.
    """

    batch: int = -1
    closed_ms: int = 0
    pane_ms: int
    contents: Contents
    query_id: str = ""
    readers: Mapping[str, ReaderWindows] = field(default_factory=dict)
    panes: Mapping[int, tuple[Part, ...]] = field(default_factory=dict)
    pieces: Mapping[tuple[int, int], Part] = field(default_factory=dict)

    @property
    def folders(self) -> set[str]:
        """Folders of the store that are still needed."""
        parts = (part for parts in self.panes.values() for part in parts)
        return {folder for folder, _ in (*parts, *self.pieces.values())}

    def to_json(self) -> str:
        """The form in the store."""
        document = {
            "format": _FORMAT,
            "batch": self.batch,
            "closed_ms": self.closed_ms,
            "pane_ms": self.pane_ms,
            "contents": asdict(self.contents),
            "query_id": self.query_id,
            "readers": [
                {
                    "name": name,
                    "windows": [
                        [spec.size_ms, spec.slide_ms, spec.offset_ms, from_ms]
                        for spec, from_ms in windows.items()
                    ],
                }
                for name, windows in self.readers.items()
            ],
            "panes": [[start, parts] for start, parts in self.panes.items()],
            "pieces": [[*window, *part] for window, part in self.pieces.items()],
        }
        return json.dumps(document)

    @classmethod
    def from_json(cls, text: str) -> LogState:
        """The state written by :meth:`to_json`."""
        document = parse_json(text, name="the log of windows", expected=_FORMAT)
        if document.get("format") != _FORMAT:
            raise HeadwayError(
                f"the log of windows is of format {document.get('format')!r}; expected {_FORMAT}. "
                "Start with a new store and a new checkpoint"
            )
        return cls(
            batch=document["batch"],
            closed_ms=document["closed_ms"],
            pane_ms=document["pane_ms"],
            contents=noun_of(document["contents"], Contents, STATE),
            query_id=document["query_id"],
            readers={
                reader["name"]: {
                    WindowSpec(size_ms=size, slide_ms=slide, offset_ms=offset): from_ms
                    for size, slide, offset, from_ms in reader["windows"]
                }
                for reader in document["readers"]
            },
            panes={
                start: tuple((folder, batch) for folder, batch in parts)
                for start, parts in document["panes"]
            },
            pieces={
                (size, end): (folder, batch) for size, end, folder, batch in document["pieces"]
            },
        )


def pane_path(folder: str, start_ms: int) -> str:
    """Path of a pane's part in a folder of the store."""
    return f"{folder}/pane={start_ms}"


def window_path(folder: str, size_ms: int, end_ms: int) -> str:
    """Path of a kept window in a folder of the store."""
    return f"{folder}/window={size_ms}-{end_ms}"


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


def watermark_of(files: SparkFiles, checkpoint: str, batch: int) -> int:
    """Spark's watermark for a batch, which it writes before the batch. [ms]"""
    path = f"{checkpoint}/offsets/{batch}"
    for line in files.read(path).splitlines():
        if line.startswith("{") and '"batchWatermarkMs"' in line:
            return int(json.loads(line)["batchWatermarkMs"])
    raise HeadwayError(f"{path}: no watermark of the batch; expected Spark's offset log")


def query_id_of(files: SparkFiles, checkpoint: str) -> str:
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


def require_matching(files: SparkFiles, checkpoint: str, store: str, state: LogState) -> None:
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
