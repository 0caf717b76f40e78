"""One figure of another tool beside ours, and the tables that ours come from."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from headway.profiler import schema
from headway.profiler.contents import CollectedLogs
from headway.profiler.export import table_rows_of
from headway.profiler.pieces import Engine, Piece

Value: TypeAlias = float | str | None
Rows: TypeAlias = Sequence[Mapping[str, Any]]

MS_PER_S = 1e3
NS_PER_S = 1e9
# Instants are floats of seconds here and whole milliseconds there.
_EXACT = 1e-2


class Mechanism(NamedTuple):
    """Why a figure differs, and our value if it is computed as the other tool does."""

    why: str
    ours_their_way: Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One figure of another tool and ours, in the unit of the other tool.

    Parameters
    ----------
    name : str
        What the figure is, with its unit.
    of : str
        Whose figure: the log, and the job, stage or task in it.
    theirs, ours : float, str or None
        The values.
    rounding : float
        How far the other tool rounds.
    mechanism : Mechanism, optional
        Why they differ, if they may.
    """

    name: str
    of: str
    theirs: Value
    ours: Value
    rounding: float = _EXACT
    mechanism: Mechanism | None = None

    @property
    def is_equal(self) -> bool:
        """Whether both are equal, up to rounding."""
        return self._agrees(self.ours)

    @property
    def is_explained(self) -> bool:
        """Whether both are equal, or are so if ours is computed their way."""
        return self.is_equal or (
            self.mechanism is not None and self._agrees(self.mechanism.ours_their_way)
        )

    @property
    def is_zero(self) -> bool:
        """Whether both are zero or empty, so that agreement means little."""
        return not self.ours and not self.theirs

    @property
    def difference(self) -> float:
        """Ours less theirs; infinite if they are not two numbers."""
        if isinstance(self.ours, str | None) or isinstance(self.theirs, str | None):
            return 0.0 if self.is_equal else math.inf
        return self.ours - self.theirs

    def _agrees(self, ours: Value) -> bool:
        if isinstance(ours, str | None) or isinstance(self.theirs, str | None):
            return ours == self.theirs
        return math.isclose(ours, self.theirs, rel_tol=1e-9, abs_tol=self.rounding)


class LogTables(NamedTuple):
    """The profiler's tables of one log."""

    application: Mapping[str, Any]
    jobs: Rows
    stages: Rows
    tasks: Rows
    stage_runs: Rows
    num_sql_executions: int

    @property
    def duration_s(self) -> float:
        """From the recorded start of the application to its recorded end."""
        return float(self.application["ended_s"] - self.application["started_s"])

    def tasks_of(self, stage_id: int, attempt_id: int) -> Rows:
        """The tasks of one attempt of a stage."""
        return [
            task
            for task in self.tasks
            if (task["stage_id"], task["attempt_id"]) == (stage_id, attempt_id)
        ]


def tables_of_logs(
    pieces: Sequence[Piece], engine: Engine, collected: CollectedLogs, apps: Mapping[str, int]
) -> dict[str, LogTables]:
    """The tables of some logs, by their names.

    Parameters
    ----------
    pieces : sequence of Piece
        Of the logs.
    engine : Engine
        What reads them.
    collected : CollectedLogs
        The same, from :func:`headway.profiler.collect.collect`.
    apps : mapping of str to int
        The number of each wanted log.
    """
    wanted = {app: collected.applications[app] for app in apps.values()}
    rows: dict[str, dict[int, list[Mapping[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for table, of_table in table_rows_of(pieces, engine, wanted):
        for row in of_table:
            rows[table][row["app"]].append(row)
    for row in collected.stage_runs:
        rows["stage_runs"][row["app"]].append(row)
    return {
        name: LogTables(
            application=rows["applications"][app][0],
            jobs=rows["jobs"][app],
            stages=rows["stages"][app],
            tasks=rows["tasks"][app],
            stage_runs=rows["stage_runs"][app],
            num_sql_executions=wanted[app].ids_of(schema.SQL_EXECUTION_START).num_distinct,
        )
        for name, app in apps.items()
    }
