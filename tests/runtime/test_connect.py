"""On Spark Connect each live call works, or says in one sentence what to do instead.

Tried on a real one, which needs packages that tests do not; these objects have its classes' names.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import headway
from headway.errors import InputError
from headway.runtime.gate.clock import require_classic
from headway.runtime.sharing.files import SparkFiles
from tests.sources import ROOT

PROFILE = ROOT / "examples" / "word-count.profile.yaml"
TARGET = "p99 <= 3s"


def of_connect(module: str, **attributes: object) -> Any:
    """An object of a class of Spark Connect, with a few attributes."""
    kind = type("Remote", (), {"__module__": f"pyspark.sql.connect.{module}", **attributes})
    return kind()


SESSION = of_connect("session", readStream=None, streams=None)
QUERY = of_connect("streaming.query", id="1", name="orders", isActive=True, lastProgress=None)
ROWS = of_connect(
    "dataframe", isStreaming=True, columns=["at", "k"], sparkSession=SESSION, schema=None
)
TABLE = of_connect(
    "dataframe", isStreaming=False, columns=["at", "k"], sparkSession=SESSION, schema=None
)
COLUMN = of_connect("column", alias=None)
WINDOWS: dict[str, Any] = {
    "time": "at", "key": ["k"], "windows": ["10s every 5s"], "aggregates": {"n": "count(*)"},
}  # fmt: skip
CASES: dict[str, Callable[[Path], object]] = {
    "watch": lambda _: headway.watch(SESSION, profile=PROFILE, target=TARGET),
    "watch a query": lambda _: headway.watch(QUERY, profile=PROFILE, target=TARGET),
    "tune": lambda folder: headway.tune(
        SESSION, print, profile=PROFILE, target=TARGET, state=folder / "state.json"  # type: ignore[arg-type]
    ),
    "setting": lambda _: headway.setting(SESSION),
    "stop when asked": lambda _: headway.stop_when_asked(QUERY),
    "explore": lambda folder: headway.explore(
        SESSION, print, f"{TARGET} at 10/s", folder=folder / "exploration"  # type: ignore[arg-type]
    ),
    "schedule": lambda _: headway.schedule(SESSION),
    "add to a gate": lambda _: require_classic(QUERY),
    "split batches": lambda folder: headway.shedding_batches(
        print, print, checkpoint=folder, arrived="at", limit="2s", costs={"a": "1ms"}, cost="k",
        fixed="1s",
    ),
    "bring back": lambda folder: headway.bring_back(folder, TABLE, arrived="at", older_than="2s"),
    "fused windows": lambda folder: headway.shared_windows(
        ROWS, **WINDOWS, how="fused", checkpoint=str(folder)
    ),
    "windows as columns": lambda _: headway.shared_windows(TABLE, COLUMN, keys=["k"]).agg(COLUMN),
    "a log of columns": lambda folder: headway.window_log(
        ROWS, COLUMN, keys=["k"], store=str(folder)
    ).agg(COLUMN),
    "metrics": lambda _: headway.publish_metrics(spark=SESSION),
    "a log of windows": lambda folder: headway.window_log(ROWS, **WINDOWS, store=str(folder)),
    "order a stream": lambda folder: headway.ordered(
        ROWS, key="k", by="at", step=print, state="n long", output="n long", checkpoint=folder  # type: ignore[arg-type]
    ),
    "files": lambda _: SparkFiles(SESSION),
}  # fmt: skip


@pytest.mark.parametrize("call", CASES.values(), ids=list(CASES))
def test_what_needs_the_driver_says_what_to_do_instead(
    call: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
    with pytest.raises(
        InputError, match=r"^Spark Connect .*; expected a classic session: "
    ) as said:
        call(tmp_path)
    assert "\n" not in str(said.value)
    assert not list(tmp_path.iterdir())
