"""What the actions of a micro-batch write, as their plans say: a table, a folder or a topic.

In `foreachBatch`, each action is an SQL execution of its own. Some commands, such as a merge into a
Delta table, run further executions inside, which only their times tell.
"""

from __future__ import annotations

import re
from collections import defaultdict

import msgspec

from headway.profiler.ids import latest
from headway.profiler.plan_nodes import last_folder
from headway.profiler.schema import SqlExecution
from headway.redaction import redact

# Bounds memory regardless of how long a query ran.
_MOST_EXECUTIONS = 50_000
_LONGEST_SECTION = 20_000
_VERBS = {
    "MergeIntoCommand": "merge into",
    "UpdateCommand": "update",
    "DeleteCommand": "delete from",
    "AppendData": "append to",
    "OverwriteByExpression": "overwrite",
    "OverwritePartitionsDynamic": "overwrite",
    "ReplaceData": "rewrite",
    "WriteDelta": "write to",
}
_VERBS_OF_MODES = {"Append": "append to", "Overwrite": "overwrite"}
# The numbered section of a command below the tree of a plan, in Spark's usual form of plans.
_SECTION = re.compile(
    r"^\(\d{1,9}\) (?:Execute )?(InsertIntoHadoopFsRelationCommand|SaveIntoDataSourceCommand"
    rf"|InsertIntoHiveTable|Create\w{{1,40}}AsSelectCommand|{'|'.join(_VERBS)}) *$",
    re.MULTILINE,
)
_ARGUMENTS = "\nArguments: "
_MODE = re.compile(r", (Append|Overwrite|ErrorIfExists|Ignore)\b")
_OPTION = re.compile(r"\b(path|dbtable|table|topic|collection)(?:=| -> )([^\s,\])]+)")
_DELTA_TABLE = re.compile(r"\bDelta\[version=\d{1,15}, ([^\],]+)\]")
_TABLE = re.compile(r"\btable=([\w.`-]+)")
_IN_CATALOGUE = re.compile(r"((?:`[^`]*`\.?)+)")


def write_in_words(plan: str) -> str | None:
    """What the text of a plan writes to; None if it writes nothing, or not to a known kind of sink.

    >>> write_in_words("(2) Execute InsertIntoHadoopFsRelationCommand\\nInput: []\\n"
    ...                "Arguments: s3://shop/sums/day=7, false, Parquet, [], Overwrite, [n]\\n\\n")
    'overwrite sums'
    """
    for section in _SECTION.finditer(plan):
        body = plan[section.end() : section.end() + _LONGEST_SECTION].partition("\n\n")[0]
        _, marker, after = body.partition(_ARGUMENTS)
        if marker:
            return _in_words(section[1], after.partition("\n")[0])
    return None


def _in_words(command: str, arguments: str) -> str | None:
    mode = _MODE.search(arguments)
    verb = _VERBS.get(command) or _VERBS_OF_MODES.get(mode[1] if mode else "", "write to")
    if command == "InsertIntoHadoopFsRelationCommand":
        return _named(verb, last_folder(arguments.partition(",")[0]))
    if command == "SaveIntoDataSourceCommand":
        options = dict(_OPTION.findall(arguments))
        if "topic" in options:
            return _named("write to topic", options["topic"])
        if "path" in options:
            return _named(verb, last_folder(options["path"]))
        return _named(verb, _last_name(next(iter(options.values()), "")))
    if (delta := _DELTA_TABLE.search(arguments)) is not None:
        return _named(verb, last_folder(delta[1]))
    table = (_TABLE if command in _VERBS else _IN_CATALOGUE).search(arguments)
    return None if table is None else _named(verb, _last_name(table[1]))


def _named(verb: str, name: str | None) -> str | None:
    return f"{verb} {redact(name)}" if name else None


def _last_name(table: str) -> str:
    return table.replace("`", "").rpartition(".")[2]


class Writes(msgspec.Struct):
    """Starts of executions and ends, by execution.

    A start has the outermost execution that it is part of, its time [ms], and of those of some
    batches what it writes itself.
    """

    starts: dict[int, tuple[int, int, str | None]] = {}
    ends_ms: dict[int, int] = {}

    def note_start(self, event: SqlExecution, *, reads_plan: bool) -> None:
        """An execution that began; those inside a command need not say of which batch they are."""
        execution_id, root_id = event.execution_id, event.root_execution_id
        if execution_id is not None and root_id is not None and event.at_ms is not None:
            write = write_in_words(event.plan or "") if reads_plan else None
            self.starts[execution_id] = root_id, event.at_ms, write

    def note_end(self, event: SqlExecution) -> None:
        if event.execution_id is not None and event.at_ms is not None:
            self.ends_ms[event.execution_id] = event.at_ms

    def add(self, other: Writes) -> None:
        """Data from another part of the log."""
        self.starts |= other.starts
        self.ends_ms |= other.ends_ms

    def leave_out_old(self) -> None:
        self.starts = latest(self.starts, _MOST_EXECUTIONS)
        self.ends_ms = latest(self.ends_ms, _MOST_EXECUTIONS)

    def of_executions(self) -> dict[int, str]:
        """What each execution writes, or the command writes inside which it ran."""
        commands: dict[int, list[tuple[int, str]]] = defaultdict(list)
        for execution_id, (root_id, _, own_write) in sorted(self.starts.items()):
            if own_write is not None:
                commands[root_id].append((execution_id, own_write))
        words = {}
        for execution_id, (root_id, _, _) in self.starts.items():
            for command_id, write in commands.get(root_id, ()):
                if command_id == execution_id or self._is_inside(execution_id, command_id):
                    words[execution_id] = write
        return words

    def _is_inside(self, execution_id: int, command_id: int) -> bool:
        """Whether an execution began after a command, and before that ended."""
        end_ms = self.ends_ms.get(command_id)
        (_, command_ms, _), (_, at_ms, _) = self.starts[command_id], self.starts[execution_id]
        return command_id < execution_id and end_ms is not None and command_ms <= at_ms < end_ms
