"""What `headway tune` says while it runs."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from headway.cli.main import run
from headway.cli.tune import _teller
from headway.domain import Configuration
from headway.domain.live import WatchedChange
from headway.domain.tuner import Phase
from headway.runtime.tuning.clean_stop import NoGapError
from headway.tuner.tuner import Tuner

NOW = Configuration(executors=1, cores_per_executor=2, shuffle_partitions=8, trigger_s=2.0)
CHANGE = WatchedChange(
    now=NOW, then=replace(NOW, trigger_s=1.0), why="more rows in time", saved_node_s_per_hour=0.0,
    latency_now_s=2.68, latency_then_s=1.72, pause_s=2.2, late_s=0.0,
)  # fmt: skip


def test_a_recommendation_is_said_once_while_its_latencies_change_a_little(
    capsys: pytest.CaptureFixture[str],
) -> None:
    status: Any = SimpleNamespace(phase=Phase.HOLD, why="learned", configuration=NOW, cautions=())
    tuner = cast(Tuner, SimpleNamespace(status=status))
    say = _teller()
    for latency_s in (1.72, 1.71, 1.73):
        say(tuner, replace(CHANGE, latency_then_s=latency_s))
    assert capsys.readouterr().out.count("recommended: trigger 2.00 s -> 1.00 s") == 1
    say(tuner, replace(CHANGE, then=replace(NOW, trigger_s=0.5)))
    assert "-> 500 ms" in capsys.readouterr().out
    say(tuner, None)
    assert "recommended" not in capsys.readouterr().out


def test_a_query_that_was_stopped_within_a_batch_is_a_warning(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def ends(*_: object, **__: object) -> None:
        raise NoGapError("stopped within a batch")

    monkeypatch.setattr("headway.cli.tune.tune_spec", ends)
    assert run(["tune", "examples/tuning/counts.yaml"]) == 0
    assert "warning: stopped within a batch" in capsys.readouterr().err
