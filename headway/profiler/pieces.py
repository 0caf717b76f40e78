"""Pieces of logs that can be read anywhere: a compressed file, or a byte range of a plain one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, NamedTuple

from headway.profiler.contents import CollectedLogs
from headway.profiler.gathered import Gathered
from headway.profiler.gatherer import Gatherer
from headway.profiler.ids import Ranges
from headway.profiler.logs.event_logs import PACKED_SUFFIX, UnreadableLogError, why_unreadable
from headway.profiler.logs.limits import Allowance, UnpackLimits
from headway.profiler.logs.log_codecs import HEAD_BYTES, plain_chunks
from headway.profiler.rows import Record, add_rows
from headway.units import parse_size_bytes

PIECE_BYTES = parse_size_bytes("16m")
"""Bytes of a plain file that are read at a time."""

_PACKED_RATIO = 10
_BLOCK_BYTES = parse_size_bytes("1m")
# Longer lines are damaged; the longest that Spark writes are plans of some megabytes.
_LONGEST_LINE_BYTES = parse_size_bytes("256m")
_SHOWN_BYTES = 1000


class Piece(NamedTuple):
    """The lines of a part of a log that begin in a byte range; all lines of a compressed file."""

    app: int
    part: int
    file: str
    start_bytes: int
    end_bytes: int

    @property
    def is_packed(self) -> bool:
        """Whether it is read in compressed form."""
        return self.file.endswith(PACKED_SUFFIX)

    @property
    def size_bytes(self) -> int:
        """Bytes of the file that are read."""
        return self.end_bytes - self.start_bytes

    @property
    def events_bytes(self) -> int:
        """Approximate uncompressed size."""
        return self.size_bytes * (_PACKED_RATIO if self.is_packed else 1)


class Order(NamedTuple):
    """Requested result of a piece: sums, or with ``wants_rows`` the rows of the tables.

    ``tasks_again`` as in :class:`headway.profiler.gatherer.Gatherer`. ``contents_of`` makes the
    contents of a log from its sums, if the piece is all of the log.
    """

    piece: Piece
    limits: UnpackLimits
    wants_rows: bool = False
    tasks_again: Ranges | None = None
    contents_of: Callable[[Gathered], CollectedLogs] | None = None


class Result(NamedTuple):
    """Result of a piece, or of several pieces of one log, as requested.

    ``contents`` are those of a whole log, in place of its sums. ``unpacked_bytes`` is the
    uncompressed size of compressed files, ``failure`` the reason why the piece, and so its log,
    cannot be read.
    """

    app: int
    gathered: Gathered | None = None
    contents: CollectedLogs | None = None
    rows: Mapping[str, list[Record]] = {}  # never changed
    unpacked_bytes: int = 0
    failure: str = ""


Engine = Callable[[Sequence[Order]], Iterator[Result]]
"""Reads pieces of logs in some place: their results in order; sums of one log may be combined."""

OnProgress = Callable[[int, int], None]
"""Called with the number of further bytes read from files, and of events in them."""


def pieces_of(work_folder: Path) -> list[Piece]:
    """The pieces of all logs that were unpacked into a folder, in the order of their writing."""
    pieces = []
    for folder in sorted(work_folder.glob("app=*"), key=lambda path: _number(path.name)):
        for file in sorted(folder.iterdir()):
            app, part = _number(folder.name), _number(file.stem)
            size_bytes = file.stat().st_size
            step = size_bytes if file.suffix == PACKED_SUFFIX else PIECE_BYTES
            pieces += [
                Piece(app, part, str(file), start, min(start + step, size_bytes))
                for start in range(0, size_bytes, max(step, 1))
            ]
    return pieces


def carried_out(order: Order, on_progress: OnProgress) -> Result:
    """Read a piece and produce the requested result."""
    piece = order.piece
    gatherer = Gatherer(piece.part, piece.start_bytes, order.tasks_again)
    tables: dict[str, list[Record]] = {}
    plain_bytes = 0
    try:
        for block, read_bytes in _blocks(order):
            plain_bytes += len(block)
            num_events = add_rows(tables, block) if order.wants_rows else gatherer.gather(block)
            on_progress(read_bytes, num_events)
    except (UnreadableLogError, OSError) as error:
        return Result(piece.app, failure=why_unreadable(error))
    if order.wants_rows:
        return Result(piece.app, rows=tables)
    result = Result(piece.app, unpacked_bytes=plain_bytes if piece.is_packed else 0)
    gathered = gatherer.done()
    if order.contents_of is None or gathered.must_count_again:
        return result._replace(gathered=gathered)
    return result._replace(contents=order.contents_of(gathered))


def _blocks(order: Order) -> Iterator[tuple[bytes, int]]:
    """Lines of a piece, some at a time, and the bytes read from the file for them."""
    piece = order.piece
    with Path(piece.file).open("rb") as opened:
        chunks = _unpacked(opened, order) if piece.is_packed else _plain(opened, piece)
        before_bytes = piece.start_bytes
        for block in _whole_lines(chunks):
            at_bytes = min(opened.tell(), piece.end_bytes)
            yield block, at_bytes - before_bytes
            before_bytes = at_bytes


def _unpacked(packed: IO[bytes], order: Order) -> Iterator[bytes]:
    head = packed.read(HEAD_BYTES)
    packed.seek(0)
    allowance = Allowance(order.limits, order.piece.size_bytes, None)
    for chunk in plain_chunks(packed, head):
        allowance.take(len(chunk))
        yield chunk


def _plain(file: IO[bytes], piece: Piece) -> Iterator[bytes]:
    """The lines that begin inside the piece."""
    at_bytes = piece.start_bytes
    if at_bytes:
        file.seek(at_bytes - 1)
        at_bytes -= 1
        while line_tail := file.readline(_BLOCK_BYTES):
            at_bytes += len(line_tail)
            if line_tail.endswith(b"\n") or at_bytes >= piece.end_bytes:
                break
        if not line_tail.endswith(b"\n"):
            return
    chunk = b""
    while at_bytes < piece.end_bytes:
        chunk = file.read(min(_BLOCK_BYTES, piece.end_bytes - at_bytes))
        if not chunk:
            return
        at_bytes += len(chunk)
        yield chunk
    while chunk and not chunk.endswith(b"\n"):
        chunk = file.readline(_BLOCK_BYTES)
        yield chunk


def _whole_lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The same, divided after ends of lines; of a line that is too long, only its beginning."""
    begun: list[bytes] = []
    begun_bytes = 0
    for chunk in chunks:
        cut = chunk.rfind(b"\n") + 1
        if cut:
            yield b"".join((*begun, memoryview(chunk)[:cut]))
            begun, begun_bytes = [], 0
        if begun_bytes < _LONGEST_LINE_BYTES:
            begun.append(chunk[cut:])
            begun_bytes += len(chunk) - cut
            if begun_bytes >= _LONGEST_LINE_BYTES:
                # The rest of the line must not look complete.
                begun = [begun[0][:_SHOWN_BYTES], b"\0"]
    if begun_bytes:
        yield b"".join(begun)


def _number(name: str) -> int:
    """Number of a folder ``app=N`` or of a file ``part-N``."""
    return int(name.replace("=", "-").partition(".")[0].rpartition("-")[2])
