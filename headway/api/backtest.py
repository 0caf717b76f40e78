"""Errors of predictions for a job, measured with its own logs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Unpack

from headway.api.profile import LogsOptions, reading
from headway.domain import Backtest
from headway.domain.argument import read_question, takes
from headway.domain.log_questions import ProfileQuestion
from headway.profiler.streaming.backtest import backtest as judged
from headway.version import __version__


@takes(ProfileQuestion)
def backtest(
    sources: str | Path | Sequence[str | Path],
    *,
    queries: Sequence[str] = (),
    trigger: str | float | None = None,
    **options: Unpack[LogsOptions],
) -> Backtest:
    """Errors of predictions for a job: fitted to one part of its logs, compared with the rest.

    Parameters are those of :func:`headway.profile`. If the logs contain runs at several settings,
    each setting is predicted from the runs at the others; otherwise the second half of each run is
    predicted from the first half.

    Raises EventLogError if no log can be read, or the logs contain too little to leave a part out;
    InputError if the logs contain several different jobs; SparkUnavailableError if Spark is to read
    them and there is no Java to run it with.
    """
    about_runs = {"queries": queries, "trigger": trigger}
    question = read_question(ProfileQuestion, {**about_runs, **options})
    with reading(sources, question) as logs_read:
        logs_read.tell("fitting and predicting", None)
        error_report = judged(
            logs_read.collected, logs_read.logs, question.queries, __version__, question.trigger_s
        )
        not_read = tuple(
            f"not read: {failure.name}: {failure.why}" for failure in logs_read.failures
        )
        return replace(error_report, notes=(*error_report.notes, *not_read))
