"""Metrics as text, in the formats of OpenMetrics and Prometheus, and as names for Spark's sinks."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

Labels: TypeAlias = tuple[tuple[str, str], ...]
Kind: TypeAlias = Literal["gauge", "counter"]

CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
_PREFIX = "headway_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A metric of one name: what it says, and its value for each combination of labels.

    The name of a counter has no ``_total``, which its samples have.
    """

    name: str
    about: str
    samples: tuple[tuple[Labels, float], ...]
    kind: Kind = "gauge"

    @property
    def sample_name(self) -> str:
        """The name by which its values are queried."""
        return f"{self.name}_total" if self.kind == "counter" else self.name


def open_metrics_text(metrics: Iterable[Metric]) -> str:
    """Metrics for a scraper, complete: the text ends with the mark of its end.

    >>> about = "Batches that a query was let begin."
    >>> samples = (((("query", "orders"),), 7.0),)
    >>> print(open_metrics_text(
    ...     [Metric(name="headway_gate_grants", kind="counter", about=about, samples=samples)]
    ... ))
    # HELP headway_gate_grants Batches that a query was let begin.
    # TYPE headway_gate_grants counter
    headway_gate_grants_total{query="orders"} 7
    # EOF
    <BLANKLINE>
    """
    return "".join(f"{line}\n" for line in (*_lines(metrics), "# EOF"))


def prometheus_text(metrics: Iterable[Metric]) -> str:
    """Metrics in Prometheus's own format, which collectors of text files read.

    Here the name of a counter is that of its samples.
    """
    return "".join(f"{line}\n" for line in _lines(metrics, is_open=False))


def spark_lines(metrics: Iterable[Metric]) -> str:
    """Metrics by names as Spark's sinks take them, a line each: name, tab, value.

    A name has the values of its labels behind dots; what is no letter or digit is an underscore.

    >>> samples = (((("query", "my orders"),), 0.25),)
    >>> spark_lines([Metric(name="headway_gate_wait_mean_seconds", about="", samples=samples)])
    'gate_wait_mean_seconds.my_orders\\t0.25\\n'
    """
    values: dict[str, float] = {}
    for metric in metrics:
        for labels, value in metric.samples:
            parts = (re.sub(r"[^A-Za-z0-9]", "_", text) for _, text in labels)
            name = ".".join((metric.sample_name.removeprefix(_PREFIX), *parts))
            if math.isfinite(value):
                values[name] = value
    return "".join(f"{name}\t{value!r}\n" for name, value in values.items())


def _lines(metrics: Iterable[Metric], *, is_open: bool = True) -> Iterator[str]:
    for metric in metrics:
        if not metric.samples:
            continue
        name = metric.name if is_open else metric.sample_name
        yield f"# HELP {name} {metric.about}"
        yield f"# TYPE {name} {metric.kind}"
        for labels, value in metric.samples:
            listed = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels)
            braces = f"{{{listed}}}" if listed else ""
            yield f"{metric.sample_name}{braces} {_number(value)}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")


def _number(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return f"{value:.10g}" if math.isfinite(value) else ("+Inf" if value > 0 else "-Inf")
