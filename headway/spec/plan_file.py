"""Plans as JSON files: what ``headway plan --json`` prints, read back."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, NoReturn

from headway.domain import (
    Applies,
    Arrivals,
    Change,
    Configuration,
    FrontierPoint,
    Interval,
    LatencyDistribution,
    Metric,
    Plan,
    Prediction,
    Rejection,
    Target,
)
from headway.errors import InputError

_SCHEMA = "headway.plan/v1"


def parse_plan(text: str, *, name: str) -> Plan:
    """A plan from its JSON.

    Parameters
    ----------
    text : str
        What ``headway plan --json`` printed.
    name : str
        What messages call it.

    Raises
    ------
    InputError
        If it is no plan of this version.

    Examples
    --------
    >>> parse_plan("{}", name="plan.json")
    Traceback (most recent call last):
    ...
    headway.errors.InputError: plan.json:1:1: schema: missing; expected headway.plan/v1, as...
    """
    try:
        data = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        where = (
            f"{error.lineno}:{error.colno}" if isinstance(error, json.JSONDecodeError) else "1:1"
        )
        raise InputError(
            f"{name}:{where}: not JSON; expected a plan as 'headway plan --json' prints it"
        ) from None
    schema = data.get("schema") if isinstance(data, dict) else None
    if schema != _SCHEMA:
        found = "missing" if schema is None else f"got {schema!r:.60}"
        raise InputError(
            f"{name}:1:1: schema: {found}; expected {_SCHEMA}, as 'headway plan --json' prints it"
        )
    return _Data(data, name).plan()


class _Data:
    """A mapping of the file, which names what is wrong with it."""

    def __init__(self, data: Any, name: str, route: str = "") -> None:
        self._name, self._route = name, route
        if not isinstance(data, Mapping):
            self._fail("", "expected a mapping")
        self._data: Mapping[str, Any] = data

    def plan(self) -> Plan:
        target = self._at("target")
        arrivals = self._at("arrivals").arrivals()
        try:
            return Plan(
                target=Target(
                    metric=Metric(target.text("metric")),
                    quantile=target.number_or_none("quantile"),
                    limit_s=target.number("limit_s"),
                ),
                arrivals=arrivals,
                feasible=self._truth("feasible"),
                nodes=self._whole("nodes"),
                configuration=self._at("configuration").configuration(),
                prediction=self._at("prediction").prediction(),
                planned_latency_s=self._unbounded("planned_latency_s"),
                frontier=tuple(each.frontier_point() for each in self._each("frontier")),
                binding=self._texts("binding"),
                rejected=tuple(each.rejection() for each in self._each("rejected")),
                changes=tuple(each.change() for each in self._each("changes")),
                spark_conf=self._text_map("spark_conf"),
                query_options=self._text_map("query_options"),
                floor_s=self.number_or_none("floor_s"),
                warnings=self._texts("warnings"),
            )
        except ValueError as error:
            self._fail("", str(error))

    def prediction(self) -> Prediction:
        return Prediction(
            configuration=self._at("configuration").configuration(),
            arrivals=self._at("arrivals").arrivals(),
            stable=self._truth("stable"),
            utilization_ratio=self._unbounded("utilization"),
            calibrated=self._truth("calibrated"),
            warnings=self._texts("warnings"),
            batch_duration=self._latency("batch_duration_s"),
            tuple_latency=self._latency("tuple_latency_s"),
            window_latency=self._latency("window_latency_s"),
            phases_s={key: float(self._at("phases_s").number(key)) for key in self._of("phases_s")},
            sustainable_rate_per_s=self._unbounded("sustainable_rate_per_s"),
        )

    def arrivals(self) -> Arrivals:
        return Arrivals(
            rate_per_s=self.number("rate_per_s"),
            dispersion_ratio=self.number("dispersion_ratio"),
        )

    def configuration(self) -> Configuration:
        limit = self.number_or_none("max_offsets_per_trigger")
        return Configuration(
            executors=self._whole("executors"),
            cores_per_executor=self._whole("cores_per_executor"),
            shuffle_partitions=self._whole("shuffle_partitions"),
            trigger_s=self.number("trigger_s"),
            max_offsets_per_trigger=None if limit is None else int(limit),
        )

    def frontier_point(self) -> FrontierPoint:
        empty = self._of("configuration") is None
        return FrontierPoint(
            nodes=self._whole("nodes"),
            sustainable_rate_per_s=self._unbounded("sustainable_rate_per_s"),
            configuration=None if empty else self._at("configuration").configuration(),
            calibrated=self._truth("calibrated"),
        )

    def rejection(self) -> Rejection:
        return Rejection(
            change=self.text("change"),
            configuration=self._at("configuration").configuration(),
            reason=self.text("reason"),
            latency_s=self.number_or_none("latency_s"),
        )

    def change(self) -> Change:
        return Change(
            setting=self.text("setting"),
            before=self.text("before"),
            after=self.text("after"),
            applies=Applies(self.text("applies")),
        )

    def text(self, key: str) -> str:
        value = self._of(key)
        return value if isinstance(value, str) else self._fail(key, "expected text")

    def number(self, key: str) -> float:
        value = self._of(key)
        if isinstance(value, bool) or not isinstance(value, int | float):
            self._fail(key, "expected a number")
        return float(value)

    def number_or_none(self, key: str) -> float | None:
        return None if self._of(key) is None else self.number(key)

    def _unbounded(self, key: str) -> float:
        # JSON has no infinity: a number without a bound is null there.
        value = self.number_or_none(key)
        return math.inf if value is None else value

    def _whole(self, key: str) -> int:
        value = self._of(key)
        if isinstance(value, bool) or not isinstance(value, int):
            self._fail(key, "expected a whole number")
        return int(value)

    def _truth(self, key: str) -> bool:
        value = self._of(key)
        return value if isinstance(value, bool) else self._fail(key, "expected true or false")

    def _texts(self, key: str) -> tuple[str, ...]:
        value = self._of(key)
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            self._fail(key, "expected a list of texts")
        return tuple(value)

    def _text_map(self, key: str) -> dict[str, str]:
        value = self._of(key)
        if not isinstance(value, dict) or not all(isinstance(one, str) for one in value.values()):
            self._fail(key, "expected a mapping of texts")
        return dict(value)

    def _latency(self, key: str) -> LatencyDistribution | None:
        if self._of(key) is None:
            return None
        inner = self._at(key)
        interval = inner._at("interval90") if inner._data.get("interval90") else None
        return LatencyDistribution(
            mean_s=inner.number("mean"),
            p50_s=inner.number("p50"),
            p95_s=inner.number("p95"),
            p99_s=inner.number("p99"),
            interval90_mean_s=None if interval is None else interval._interval("mean"),
            interval90_p99_s=None if interval is None else interval._interval("p99"),
        )

    def _interval(self, key: str) -> Interval | None:
        value = self._data.get(key)
        if value is None:
            return None
        if not isinstance(value, list) or len(value) != 2 or value[0] is None:
            self._fail(key, "expected two numbers")
        low, high = value
        return Interval(low=float(low), high=math.inf if high is None else float(high))

    def _each(self, key: str) -> list[_Data]:
        value = self._of(key)
        if not isinstance(value, list):
            self._fail(key, "expected a list")
        return [
            _Data(one, self._name, f"{self._route}{key}[{at}].") for at, one in enumerate(value)
        ]

    def _at(self, key: str) -> _Data:
        return _Data(self._of(key), self._name, f"{self._route}{key}.")

    def _of(self, key: str) -> Any:
        if key not in self._data:
            self._fail(key, "missing; expected as 'headway plan --json' prints it")
        return self._data[key]

    def _fail(self, key: str, what: str) -> NoReturn:
        route = f"{self._route}{key}".rstrip(".") or "plan"
        raise InputError(f"{self._name}:1:1: {route}: {what}")
