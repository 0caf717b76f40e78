"""What SQL executions read and write: number of files, and a table, a folder or a topic in words.

In `foreachBatch`, each action of a micro-batch is an execution of its own. Some commands, such as a
merge into a Delta table, run further executions inside, which only their times tell.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict

import msgspec

from headway.profiler.ids import latest
from headway.profiler.plan_nodes import PlanNode, in_pre_order, last_folder
from headway.profiler.schema import BatchOf, SqlExecution, SqlUpdate
from headway.redaction import redact

# Bounds memory regardless of how long a query ran.
_MOST_EXECUTIONS, _MOST_SCANS, _MOST_VALUES = 50_000, 5_000, 50_000
_FILES_READ, _BYTES_READ = "number of files read", "size of files read"
_FILES_WRITTEN = "number of written files"
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
# The numbered section of a command below the tree of a plan, in Spark's usual form of plans. A line
# end and a bracket are searched for faster than every beginning of a line.
_SECTION = re.compile(
    r"\n\(\d{1,9}\) (?:Execute )?(InsertIntoHadoopFsRelationCommand|SaveIntoDataSourceCommand"
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

    >>> write_in_words("\\n(2) Execute InsertIntoHadoopFsRelationCommand\\nInput: []\\n"
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


class Executions(msgspec.Struct):
    """SQL executions of a log, and the operators in those of batches that count files.

    ``starts`` have, by execution, the outermost execution that it is part of, its time [ms], and
    of those of some batches what it writes itself. ``scans`` are the accumulators of the number of
    files and of their bytes, and the batch; ``writers`` those of the number of files that actions
    in `foreachBatch` write; ``values`` are those of the driver's accumulators by id.
    """

    starts: dict[int, tuple[int, int, str | None]] = {}
    ends_ms: dict[int, int] = {}
    scans: set[tuple[int, int, BatchOf]] = set()
    writers: set[tuple[int, BatchOf]] = set()
    values: dict[int, int] = {}

    def note_start(self, event: SqlExecution, *, reads_plan: bool) -> None:
        """An execution that began; those inside a command need not say of which batch they are."""
        execution_id, root_id = event.execution_id, event.root_execution_id
        if execution_id is not None and root_id is not None and event.at_ms is not None:
            write = write_in_words(event.plan or "") if reads_plan else None
            self.starts[execution_id] = root_id, event.at_ms, write

    def note_end(self, event: SqlExecution) -> None:
        if event.execution_id is not None and event.at_ms is not None:
            self.ends_ms[event.execution_id] = event.at_ms

    def note_plan(self, plan: PlanNode, batch: BatchOf) -> None:
        """The plan of a batch, whose operators may read or write files."""
        for node, _ in in_pre_order(plan):
            ids = {metric.name: metric.accumulator_id for metric in node.metrics or () if metric}
            num_files_id, size_bytes_id = ids.get(_FILES_READ), ids.get(_BYTES_READ)
            if num_files_id is not None and size_bytes_id is not None:
                self.scans.add((num_files_id, size_bytes_id, batch))
            if (num_written_id := ids.get(_FILES_WRITTEN)) is not None:
                self.writers.add((num_written_id, batch))

    def note_values(self, updates: SqlUpdate) -> None:
        accumulator_values = self.values
        for pair in updates.values or ():
            match pair:
                case [int(accumulator_id), int(value)]:
                    if value > accumulator_values.get(accumulator_id, 0):
                        accumulator_values[accumulator_id] = value

    def add(self, other: Executions) -> None:
        """Data from another part of the log."""
        self.starts |= other.starts
        self.ends_ms |= other.ends_ms
        self.scans |= other.scans
        self.writers |= other.writers
        for accumulator_id, value in other.values.items():
            self.values[accumulator_id] = max(value, self.values.get(accumulator_id, value))

    def leave_out_old(self) -> None:
        self.starts = latest(self.starts, _MOST_EXECUTIONS)
        self.ends_ms = latest(self.ends_ms, _MOST_EXECUTIONS)
        if len(self.scans) > _MOST_SCANS:
            self.scans = set(sorted(self.scans)[-_MOST_SCANS:])
        if len(self.writers) > _MOST_SCANS:
            self.writers = set(sorted(self.writers)[-_MOST_SCANS:])
        self.values = latest(self.values, _MOST_VALUES)

    def files_read(self) -> dict[BatchOf, tuple[int, int]]:
        """Number and bytes of the files of each batch that reads files in one place; of several,
        no event shows which one is the stream's.
        """
        num_scans = Counter(batch for _, _, batch in self.scans)
        files_by_batch = {
            batch: (self.values.get(num_files_id, 0), self.values.get(size_bytes_id, 0))
            for num_files_id, size_bytes_id, batch in self.scans
            if num_scans[batch] == 1
        }
        return {batch: files for batch, files in sorted(files_by_batch.items()) if min(files) > 0}

    def files_written(self) -> dict[BatchOf, int]:
        """Number of files that the actions of each batch wrote."""
        num_files = Counter[BatchOf]()
        for num_written_id, batch in sorted(self.writers):
            num_files[batch] += self.values.get(num_written_id, 0)
        return dict(num_files)

    def writes(self) -> dict[int, str]:
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
