"""On Spark Connect each live call works, or says in one sentence what to do instead.

These objects have the names of its classes; `test_on_connect` has a server of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headway.errors import InputError
from tests.runtime.connect_cases import REFUSED, Remote


def of_connect(module: str, **attributes: object) -> Any:
    """An object of a class of Spark Connect, with a few attributes."""
    kind = type("Remote", (), {"__module__": f"pyspark.sql.connect.{module}", **attributes})
    return kind()


SESSION = of_connect("session", readStream=None, streams=None)
COLUMNS = {"columns": ["at", "k"], "sparkSession": SESSION, "schema": None}
REMOTE = Remote(
    session=SESSION,
    query=of_connect("streaming.query", id="1", name="orders", isActive=True, lastProgress=None),
    rows=of_connect("dataframe", isStreaming=True, **COLUMNS),
    table=of_connect("dataframe", isStreaming=False, **COLUMNS),
    column=of_connect("column", alias=None),
)


@pytest.mark.parametrize("call", REFUSED.values(), ids=list(REFUSED))
def test_what_needs_the_driver_says_what_to_do_instead(
    call: Callable[[Remote, Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
    with pytest.raises(
        InputError, match=r"^Spark Connect .*; expected a classic session: "
    ) as said:
        call(REMOTE, tmp_path)
    assert "\n" not in str(said.value)
    assert not list(tmp_path.iterdir())
