"""Arguments of the calls for turns and shedding: targets, profiles, windows, times by class."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path

from headway.domain import JobProfile, Metric, Target, WindowGrid
from headway.domain.argument_values import Duration, Positive, not_expected, of_class
from headway.errors import InputError
from headway.formats.profile_file import load_profile
from headway.units import parse_size_bytes

TIME, DELAY, OFFSET = Duration(), Duration(may_be_zero=True), Duration(is_signed=True)
NAME = of_class(str, "a text, e.g. 'orders'")
MEMORY = Positive(words="a size, e.g. '2g', or more than 0 bytes", parse=parse_size_bytes)
_PROFILE = of_class(
    str | Path | JobProfile,
    "a file that 'headway profile' wrote, or what headway.load_profile gives",
    is_path=True,
)


def row_and_window_target(
    targets: str | Target | Sequence[str | Target],
) -> tuple[Target | None, Target | None]:
    """The target for rows and the target for windows, at most one of each.

    Raises InputError if there are more, or one is of another kind.
    """
    target_list = [targets] if isinstance(targets, str | Target) else targets
    if not isinstance(target_list, Sequence):
        raise not_expected("target", targets, "a text such as 'p99 <= 2s', or a list of them")
    target_by_metric: dict[Metric, Target] = {}
    for unparsed in target_list:
        if not isinstance(unparsed, str | Target):
            raise not_expected("target", targets, "a list of texts such as 'p99 <= 2s'")
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

    Raises InputError if it is neither, or the file is not the profile of a streaming query.
    """
    if profile is None:
        return None
    file_or_profile: JobProfile | str | Path = _PROFILE.read(profile, "profile")
    if isinstance(file_or_profile, str | Path):
        return load_profile(file_or_profile)
    return file_or_profile


def given_windows(slide: object, offset: object, delay: object) -> WindowGrid | None:
    """Windows as given; None if they are to be taken from the query's plan.

    Raises InputError if a time makes no sense, or is given without the slide of the windows.
    """
    if slide is not None:
        return WindowGrid(
            slide_s=TIME.read(slide, "window_slide"),
            offset_s=OFFSET.read(offset, "window_offset"),
            watermark_delay_s=DELAY.read(delay, "watermark_delay"),
        )
    for name, value in (("window_offset", offset), ("watermark_delay", delay)):
        if OFFSET.read(value, name) != 0.0:
            raise InputError(
                f"{name} is {value!r} without window_slide; expected both, or neither to have "
                "windows and watermark read off the query's plan"
            )
    return None


def limits_by_class_s(older_than: object) -> dict[str, float] | float:
    """Ages from which rows are shed, by cost class or one for all. [s]

    Raises InputError if a limit is no positive duration; names its class.
    """
    if not isinstance(older_than, Mapping):
        return TIME.read(older_than, "older_than")
    return times_by_class_s(older_than, "older_than")


def times_by_class_s(times: object, name: str) -> dict[str, float]:
    """A positive duration of each cost class. [s]

    Raises InputError if it is no mapping, or a value is no such duration; names the class.
    """
    if not isinstance(times, Mapping):
        raise not_expected(name, times, "a duration of each class, e.g. {'cheap': '20us'}")
    for kind in times:
        if kind is None or (isinstance(kind, float | Decimal) and not math.isfinite(kind)):
            raise InputError(f"{name}: got a class {kind!r}; expected values of the cost column")
    return {kind: TIME.read(duration, f"{name}[{kind!r}]") for kind, duration in times.items()}
