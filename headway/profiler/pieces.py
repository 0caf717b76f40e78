"""Pieces of logs that can be read anywhere: a packed file, or some bytes of a plain one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, NamedTuple

from headway.profiler.gathered import Gathered, Gatherer
from headway.profiler.ids import Ranges
from headway.profiler.logs.event_logs import PACKED_SUFFIX, UnreadableLogError, why_unreadable
from headway.profiler.logs.limits import Allowance, UnpackLimits
from headway.profiler.logs.log_codecs import HEAD_BYTES, plain_chunks
from headway.profiler.rows import Record, TableRows
from headway.units import parse_size_bytes

PIECE_BYTES = parse_size_bytes("16m")
"""How many bytes of a plain file are read at a time."""

_PACKED_RATIO = 10
_BLOCK_BYTES = parse_size_bytes("1m")
# What is longer is damage: plans of some megabytes are the longest that Spark writes.
_LONGEST_LINE_BYTES = parse_size_bytes("256m")
_SHOWN_BYTES = 1000


class Piece(NamedTuple):
    """The lines of a part of a log that begin between two places; of a packed file all lines."""

    app: int
    part: int
    file: str
    start_bytes: int
    end_bytes: int

    @property
    def is_packed(self) -> bool:
        """Whether it is read as it is packed."""
        return self.file.endswith(PACKED_SUFFIX)

    @property
    def size_bytes(self) -> int:
        """Bytes of the file that are read."""
        return self.end_bytes - self.start_bytes

    @property
    def events_bytes(self) -> int:
        """About how much it is unpacked."""
        return self.size_bytes * (_PACKED_RATIO if self.is_packed else 1)


class Order(NamedTuple):
    """What is to be made of a piece: sums, or with ``wants_rows`` the rows of the tables.

    ``tasks_again`` as of :class:`headway.profiler.gathered.Gatherer`.
    """

    piece: Piece
    limits: UnpackLimits
    wants_rows: bool = False
    tasks_again: Ranges | None = None


class Result(NamedTuple):
    """What was made of a piece, or of several of one log, as was wanted.

    ``unpacked_bytes`` is what packed files grew to, ``failure`` why the piece, and so its log,
    cannot be read.
    """

    app: int
    gathered: Gathered | None = None
    rows: Mapping[str, list[Record]] = {}  # never changed
    unpacked_bytes: int = 0
    failure: str = ""


OnProgress = Callable[[int, int], None]
"""Called with so many more bytes of the files that were read, and events in them."""


def pieces_of(work_folder: Path) -> list[Piece]:
    """The pieces of all logs that were unpacked into a folder, in the order of writing."""
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
    """Read a piece and make of it what is wanted."""
    try:
        return _rows(order, on_progress) if order.wants_rows else _gathered(order, on_progress)
    except (UnreadableLogError, OSError) as error:
        return Result(order.piece.app, failure=why_unreadable(error))


def _gathered(order: Order, on_progress: OnProgress) -> Result:
    piece = order.piece
    gatherer = Gatherer(piece.part, piece.start_bytes, order.tasks_again)
    plain_bytes = 0
    for block in _blocks(order):
        plain_bytes += block.plain_bytes
        on_progress(block.read_bytes, gatherer.gather(block.lines))
    return Result(piece.app, gatherer.done(), unpacked_bytes=plain_bytes if piece.is_packed else 0)


def _rows(order: Order, on_progress: OnProgress) -> Result:
    found = TableRows()
    for block in _blocks(order):
        on_progress(block.read_bytes, found.add(block.lines))
    return Result(order.piece.app, rows=found.tables)


class _Block(NamedTuple):
    """Some lines, the bytes that they are, and the bytes of the file that were read for them."""

    lines: list[bytes]
    plain_bytes: int
    read_bytes: int


def _blocks(order: Order) -> Iterator[_Block]:
    piece = order.piece
    with Path(piece.file).open("rb") as opened:
        chunks = _unpacked(opened, order) if piece.is_packed else _plain(opened, piece)
        before_bytes = piece.start_bytes
        for whole in _whole_lines(chunks):
            at_bytes = min(opened.tell(), piece.end_bytes)
            yield _Block(whole.splitlines(), len(whole), at_bytes - before_bytes)
            before_bytes = at_bytes


def _unpacked(packed: IO[bytes], order: Order) -> Iterator[bytes]:
    head = packed.read(HEAD_BYTES)
    packed.seek(0)
    allowance = Allowance(order.limits, order.piece.size_bytes, None)
    for chunk in plain_chunks(packed, head):
        allowance.take(len(chunk))
        yield chunk


def _plain(file: IO[bytes], piece: Piece) -> Iterator[bytes]:
    """The lines that begin inside of the piece."""
    at_bytes = piece.start_bytes
    if at_bytes:
        file.seek(at_bytes - 1)
        at_bytes -= 1
        while rest := file.readline(_BLOCK_BYTES):
            at_bytes += len(rest)
            if rest.endswith(b"\n") or at_bytes >= piece.end_bytes:
                break
        if not rest.endswith(b"\n"):
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
    """The same cut behind ends of lines; of a line that is too long only its beginning."""
    begun: list[bytes] = []
    begun_bytes = 0
    for chunk in chunks:
        cut = chunk.rfind(b"\n") + 1
        if cut:
            yield b"".join((*begun, chunk[:cut]))
            begun, begun_bytes = [], 0
        if begun_bytes < _LONGEST_LINE_BYTES:
            begun.append(chunk[cut:])
            begun_bytes += len(chunk) - cut
            if begun_bytes >= _LONGEST_LINE_BYTES:
                # No end of the line may make what is left of it look whole.
                begun = [begun[0][:_SHOWN_BYTES], b"\0"]
    if begun_bytes:
        yield b"".join(begun)


def _number(name: str) -> int:
    """That of a folder ``app=N`` or of a file ``part-N``."""
    return int(name.replace("=", "-").partition(".")[0].rpartition("-")[2])
