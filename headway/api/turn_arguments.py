"""Arguments of the calls for turns and shedding: times, targets, profiles, each checked by name."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from headway.domain import JobProfile, Metric, Target, WindowGrid
from headway.errors import InputError
from headway.formats.profile_file import load_profile
from headway.units import parse_duration_s, parse_size_bytes

_DURATION = "e.g. '500ms' or a number of seconds"


def seconds(value: object, name: str, *, may_be_zero: bool = False, signed: bool = False) -> float:
    """A duration given as text or as a number of seconds. [s]

    Raises
    ------
    InputError
        If it is neither, not finite, or out of range; names the argument.

    Examples
    --------
    >>> seconds("500ms", "limit"), seconds(0, "delay", may_be_zero=True)
    (0.5, 0.0)
    >>> seconds(-1, "window_slide")
    Traceback (most recent call last):
    ...
    headway.errors.InputError: window_slide: got -1; expected a positive duration, e.g. '500ms' or a
    number of seconds
    """
    if isinstance(value, str):
        try:
            duration_s = parse_duration_s(value)
        except InputError as error:
            raise InputError(f"{name}: {error}") from None
    elif isinstance(value, int | float) and not isinstance(value, bool):
        duration_s = float(value)
    else:
        raise InputError(f"{name}: got {value!r}; expected a duration, {_DURATION}")
    if not math.isfinite(duration_s):
        raise InputError(f"{name}: got {value!r}; expected a finite duration, {_DURATION}")
    if not signed and (duration_s < 0.0 or (duration_s == 0.0 and not may_be_zero)):
        expected = "0 seconds or more" if may_be_zero else "a positive duration"
        raise InputError(f"{name}: got {value!r}; expected {expected}, {_DURATION}")
    return duration_s


def memory_limit_bytes(value: object) -> float | None:
    """A limit of memory given as text or as a number of bytes; None for none. [bytes]

    Raises
    ------
    InputError
        If it is neither, or not more than 0.
    """
    if value is None:
        return None
    if isinstance(value, str):
        try:
            limit_bytes: float = parse_size_bytes(value)
        except InputError as error:
            raise InputError(f"memory_limit: {error}") from None
    elif isinstance(value, int | float) and not isinstance(value, bool):
        limit_bytes = float(value)
    else:
        raise InputError(
            f"memory_limit: got {value!r}; expected a size, e.g. '2g', or a number of bytes"
        )
    if not limit_bytes > 0.0:
        raise InputError(f"memory_limit: got {value!r}; expected more than 0 bytes, e.g. '2g'")
    return limit_bytes


def row_and_window_target(
    targets: str | Target | Sequence[str | Target],
) -> tuple[Target | None, Target | None]:
    """The target for rows and the target for windows, at most one of each.

    Raises
    ------
    InputError
        If there are more, or one is of another kind.
    """
    target_list = [targets] if isinstance(targets, str | Target) else targets
    if not isinstance(target_list, Sequence):
        raise InputError(
            f"target: got {targets!r}; expected e.g. 'p99 <= 2s', or a list of such texts"
        )
    target_by_metric: dict[Metric, Target] = {}
    for unparsed in target_list:
        if not isinstance(unparsed, str | Target):
            raise InputError(f"target: got {unparsed!r} in a list; expected e.g. 'p99 <= 2s'")
        target = Target.parse(unparsed) if isinstance(unparsed, str) else unparsed
        if target.metric is Metric.BATCH or target.metric in target_by_metric:
            raise InputError(
                f"target {target}: expected at most one of rows, e.g. 'p99 <= 2s', and one of "
                "windows, e.g. 'window p99 <= 3s'"
            )
        target_by_metric[target.metric] = target
    return target_by_metric.get(Metric.TUPLE), target_by_metric.get(Metric.WINDOW)


def known_profile(profile: object) -> JobProfile | None:
    """A profile, or the profile in a file; None for none.

    Raises
    ------
    InputError
        If it is neither, or the file is not the profile of a streaming query.
    """

    if profile is None or isinstance(profile, JobProfile):
        return profile
    if not isinstance(profile, str | Path):
        raise InputError(
            f"profile: got {profile!r}; expected a file that 'headway profile' wrote, or what "
            "headway.load_profile gives"
        )
    return load_profile(profile)


def given_windows(slide: object, offset: object, delay: object) -> WindowGrid | None:
    """Windows as given; None if they are to be taken from the query's plan.

    Raises
    ------
    InputError
        If a time makes no sense, or is given without the slide of the windows.
    """
    if slide is not None:
        return WindowGrid(
            slide_s=seconds(slide, "window_slide"),
            offset_s=seconds(offset, "window_offset", signed=True),
            watermark_delay_s=seconds(delay, "watermark_delay", may_be_zero=True),
        )
    for name, value in (("window_offset", offset), ("watermark_delay", delay)):
        if seconds(value, name, may_be_zero=True, signed=True) != 0.0:
            raise InputError(
                f"{name}: got {value!r} without window_slide; expected both, or neither to have "
                "windows and watermark read off the query's plan"
            )
    return None


def any_name(name: object) -> str | None:
    """Name of a query in a report; None for the query's own name.

    Raises
    ------
    InputError
        If it is no text, or an empty one.
    """
    if name is not None and not (isinstance(name, str) and name):
        raise InputError(f"name: got {name!r}; expected a text, e.g. 'orders'")
    return name


def limits_by_class_s(older_than: object) -> dict[str, float] | float:
    """Ages from which rows are shed, by cost class or one for all. [s]

    Raises
    ------
    InputError
        If a limit is no positive duration; names its class.
    """
    if not isinstance(older_than, Mapping):
        return seconds(older_than, "older_than")
    return times_by_class_s(older_than, "older_than")


def times_by_class_s(times: object, name: str) -> dict[str, float]:
    """A positive duration of each cost class. [s]

    Raises
    ------
    InputError
        If it is no mapping, or a value is no such duration; names the class.
    """
    if not isinstance(times, Mapping):
        raise InputError(
            f"{name}: got {times!r}; expected a duration of each class, e.g. {{'cheap': '20us'}}"
        )
    for kind in times:
        if kind is None or (isinstance(kind, float) and math.isnan(kind)):
            raise InputError(f"{name}: got a class {kind!r}; expected values of the cost column")
    return {kind: seconds(duration, f"{name}[{kind!r}]") for kind, duration in times.items()}
