"""Calls every live feature in a session of a real Spark Connect; prints what each said, as JSON.

A process of its own, since a process has either classic sessions or those of Connect.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from headway.errors import HeadwayError
from tests.runtime.connect_cases import (
    REFUSED,
    WORKS,
    Remote,
    averages_of_decimals,
    panes_with_a_checkpoint,
)

CONF = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2"}
ALL_REFUSED = REFUSED | {
    "panes with a checkpoint": panes_with_a_checkpoint,
    "averages of decimals": averages_of_decimals,
}


def main(folder: Path) -> None:
    """Run all cases on a server that lives as long as this process."""
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as F  # noqa: N812

    builder = SparkSession.builder.remote("local[2]")
    for name, value in CONF.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    rate = session.readStream.format("rate").option("rowsPerSecond", 20).load()
    rows = rate.selectExpr("timestamp AS at", "value % 3 AS k")
    remote = Remote(
        session=session,
        query=rows.writeStream.format("noop").queryName("orders").start(),
        rows=rows,
        table=session.range(60).selectExpr("timestamp_seconds(id) AS at", "id % 3 AS k"),
        column=F.window("at", "10 seconds", "5 seconds"),
    )
    refused = _outcomes(ALL_REFUSED, remote, folder / "refused")
    written = [path.name for path in (folder / "refused").rglob("*") if path.is_file()]
    remote.query.stop()
    works = _outcomes(WORKS, remote, folder / "works")
    outcomes = {"refused": refused, "written": written, "works": works}
    session.stop()
    (folder / "outcomes.json").write_text(json.dumps(outcomes))


def _outcomes(
    cases: Mapping[str, Callable[[Remote, Path], object]], remote: Remote, folder: Path
) -> dict[str, object]:
    outcomes: dict[str, object] = {}
    for number, (name, call) in enumerate(cases.items()):
        own = folder / str(number)
        own.mkdir(parents=True)
        try:
            outcomes[name] = {"gave": _plain(call(remote, own))}
        except HeadwayError as error:
            outcomes[name] = {"said": str(error)}
        except Exception as error:
            outcomes[name] = {"raised": f"{type(error).__name__}: {error}"[:2000]}
    return outcomes


def _plain(value: object) -> object:
    return value if isinstance(value, list | dict | int | str | tuple) else repr(value)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
