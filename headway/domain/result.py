"""Methods of every result: show itself, and become data, a table or a file.

Words, pages and files are made in other packages; a result loads them when they are needed, so that
mere computations do not pay for them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from headway.lazy_names import loads_when_used

_find = loads_when_used(
    "headway.domain", {"headway.api.results": "in_short first_screen as_data as_table save"}
)


class Result:
    """A plan, prediction, profile, or another answer of Headway.

    ``result_kind`` is what it is: its JSON has the schema ``headway.<kind>/v1``, and
    `headway.api.result_kinds` knows by it how to show it.

    >>> from headway.domain import Configuration, Arrivals, Prediction
    >>> Prediction(
    ...     configuration=Configuration(
    ...         executors=1, cores_per_executor=2, shuffle_partitions=8, trigger_s=1.0
    ...     ),
    ...     arrivals=Arrivals(rate_per_s=2e5), stable=False, utilization_ratio=1.0,
    ...     calibrated=True, batch_duration=None, tuple_latency=None, window_latency=None,
    ...     phases_s={}, sustainable_rate_per_s=1.4e5,
    ... )
    <Prediction: Not stable at 200k/s: the backlog grows without bound, so there is no latency...>
    """

    __slots__ = ()

    result_kind: ClassVar[str]

    def __repr__(self) -> str:
        """One line; the fields are in `to_dict`."""
        return str(_find("in_short")(self))

    def _repr_html_(self) -> str:
        """The first screen of its page with its chart, for notebooks."""
        return str(_find("first_screen")(self))

    def to_dict(self) -> dict[str, Any]:
        """What its command prints with ``--json``; for a profile the content of its file."""
        return dict(_find("as_data")(self))

    def to_pandas(self, table: str = "", *, profile: Any = None) -> Any:
        """A table of it as a DataFrame: the frontier of a plan, the stages of a profile.

        Parameters
        ----------
        table : str
            Its main table by default; else the name of another list in `to_dict`, such as
            ``"sensitivities"``, with dots for what is nested. ``"what_if"`` of a plan is its job
            with other numbers of nodes, triggers and rates.
        profile : JobProfile or path
            For ``"what_if"``: the profile, or the log, that the plan was made from.

        Raises
        ------
        InputError
            If there is no such table; the message names those that there are.
        MissingPackagesError
            If pandas is not installed.
        """
        return _find("as_table")(self, table, profile=profile)

    def save(self, path: str | Path) -> Path:
        """Write it to a file: JSON, a page (``.html``), for a profile YAML; returns the path.

        Raises InputError for another extension; HeadwayError if the file cannot be written.
        """
        return Path(_find("save")(self, path))
