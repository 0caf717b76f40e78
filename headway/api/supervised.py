"""Calls for an application that a supervisor has started: get its setting, stop when asked."""

from __future__ import annotations

import contextlib
import logging
import math
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from headway.domain import QuerySetting
from headway.errors import ActuatorError, HeadwayError, InputError, first_line
from headway.formats.setting_file import (
    NUMBER_VARIABLE,
    SETTING_VARIABLE,
    GivenSetting,
    alive_file,
    load_setting,
    save_answer,
)
from headway.profiler.recording.recorder import record
from headway.runtime.given import require_no_connect
from headway.runtime.tuning.clean_stop import NoGapError, stop_between_batches
from headway.runtime.tuning.session import let_stops_end, require_classic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

SETTING_KEY = "spark.headway.setting"
_PARTITIONS_KEY = "spark.sql.shuffle.partitions"
_ASKED_EVERY_S = 0.25
_LOG = logging.getLogger("headway.tuner")


def setting(spark: SparkSession) -> QuerySetting:
    """The setting at which ``headway tune SPEC --supervise -- COMMAND`` has started this one.

    Its shuffle partitions are set on the session, and the session records itself for the
    supervisor from here on.

    Parameters
    ----------
    spark : SparkSession
        With ``spark.headway.setting``, or the environment variable ``HEADWAY_SETTING``.

    Raises
    ------
    InputError
        If no supervisor has started it.
    """
    require_classic(spark)
    path = _setting_file(spark)
    request = load_setting(path)
    remember_start(path, request.number)
    spark.conf.set(_PARTITIONS_KEY, str(request.configuration.shuffle_partitions))
    let_stops_end(spark)
    record(spark, request.recording)
    return QuerySetting(configuration=request.configuration)


def remember_start(path: Path, number: int) -> None:
    """Keep a setting file and the number of its start for :func:`stop_when_asked`.

    It knows no session, so they are in the environment. A number of this file that is already there
    is that of the start, and older than later requests.
    """
    if os.environ.get(SETTING_VARIABLE) != str(path):
        os.environ.pop(NUMBER_VARIABLE, None)
    os.environ[SETTING_VARIABLE] = str(path)
    os.environ.setdefault(NUMBER_VARIABLE, str(number))


def stop_when_asked(query: StreamingQuery) -> None:
    """Wait until the supervisor asks for another setting, then stop between two batches.

    Parameters
    ----------
    query : StreamingQuery
        The query, started at :func:`headway.setting`.

    Raises
    ------
    InputError
        If it is no query, or one of Spark Connect.
    HeadwayError
        If the query ends by itself.
    """
    require_no_connect(
        query,
        "cannot stop a query between two batches",
        "start it in the driver that the supervisor has started",
    )
    if not hasattr(query, "isActive"):
        raise InputError(f"query: got {query!r}; expected a StreamingQuery, as start() gives it")
    path = _setting_file(None)
    start_request = load_setting(path)
    # What was asked while the session started is newer than the number it was started with.
    answered_number = int(os.environ.get(NUMBER_VARIABLE, start_request.number))
    hear = _listener(path)
    while query.isActive:
        request = hear()
        if request is not None and request.number != answered_number:
            answered_number = request.number
            try:
                stop_between_batches(
                    query,
                    start_request.configuration.trigger_s,
                    may_cut=request.may_cut,
                    is_wanted=_still_wanted(hear, request.number),
                )
            except ActuatorError as error:
                no_gap = isinstance(error, NoGapError)
                _answer(path, request.number, str(error), no_gap=no_gap)
                continue
            with contextlib.suppress(OSError):
                alive_file(path).unlink(missing_ok=True)
            _answer(path, request.number, None)
            return
        time.sleep(_ASKED_EVERY_S)
    failure = query.exception()
    if failure is not None:
        raise HeadwayError(f"the query ended by itself: {first_line(failure)}")


def _still_wanted(hear: Callable[[], GivenSetting | None], number: int) -> Callable[[], bool]:
    """Whether a request is still in force, as far as known; looked at four times a second."""
    looked_s = -math.inf
    is_wanted = True

    def look() -> bool:
        nonlocal looked_s, is_wanted
        if time.monotonic() - looked_s >= _ASKED_EVERY_S:
            looked_s = time.monotonic()
            request = hear()
            if request is not None:
                is_wanted = request.number == number and not request.is_withdrawn
        return is_wanted

    return look


def _listener(path: Path) -> Callable[[], GivenSetting | None]:
    """What the supervisor asks for; each look is a sign of life.

    None as long as its files cannot be used, as on a full disk: the query does not end for that.
    """
    is_deaf = False

    def hear() -> GivenSetting | None:
        nonlocal is_deaf
        try:
            alive_file(path).touch()
            request = load_setting(path)
        except (OSError, InputError) as error:
            if not is_deaf:
                why = first_line(error)
                _LOG.warning("the supervisor cannot be heard, and the query goes on: %s", why)
            is_deaf = True
            return None
        is_deaf = False
        return request

    return hear


def _answer(path: Path, number: int, why: str | None, *, no_gap: bool = False) -> None:
    """Answer a request, if that is possible; a supervisor that hears nothing waits, then acts."""
    try:
        save_answer(path, number=number, why=why, no_gap=no_gap)
    except HeadwayError as error:
        _LOG.warning("the supervisor cannot be answered: %s", error)


def _setting_file(spark: SparkSession | None) -> Path:
    setting_path = None if spark is None else spark.conf.get(SETTING_KEY, None)
    setting_path = setting_path or os.environ.get(SETTING_VARIABLE)
    if not setting_path:
        raise InputError(
            f"neither {SETTING_KEY} nor {SETTING_VARIABLE} is set; start it by "
            "headway tune SPEC --supervise -- COMMAND"
        )
    return Path(setting_path)
