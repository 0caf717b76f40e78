"""The whole command line under hostile files, options and calls, in this process.

``python -m tests.fuzz.run --inputs 2000 --seed 1 --processes 2``. An input is made from the seed
and its own number, so any of them can be repeated: ``--first NUMBER --inputs 1``. What fails is
written to a folder, with the command.
"""

from __future__ import annotations

import argparse
import contextlib
import http.server
import io
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

import headway
from headway.cli.main import run
from headway.errors import ExitCode, HeadwayError
from tests.fuzz.kinds import CALLS, Kind, call_arguments, good_files, kinds
from tests.fuzz.mutators import (
    BOMB,
    as_json,
    changed_bytes,
    changed_data,
    changed_lines,
    deeper,
    hostile_value,
)

#: Of the processor; the clock of a machine with other work runs three times as long.
LONGEST_S = 20
MOST_BYTES = 1_500 * 2**20
_OPTIONS = (
    "--rate", "--target", "--executors", "--cores", "--partitions", "--trigger", "--max-offsets",
    "--task-cpus", "--jvm-age", "--max-nodes", "--node-cores", "--node-type", "--objective",
    "--budget", "--checkpoint", "--burst", "--confidence", "--format", "--mode", "--path", "--keys",
    "--window", "--json", "--strict", "-v", "-q", "--catalog", "--platform", "--from-start", "-o",
)  # fmt: skip
_ANSWERS = (
    "5k/s", "0", "-1", "nan", "inf", "1e999", "9" * 500, "", " ", "p99 <= 3s", "p0 <= 1s", "1s",
    "100000", "100001", "\x1b[2J", "\u202e", "a\nb", "local", "json", "text", "real-time", "50%",
    "/dev/zero", "/dev/null", "/dev/full", "/", "LOOP", "CHILD", "FOLDER", "BOMB", "10y",
    "new", "existing", "aws", "m5.xlarge", "cost", "nodes", "+50% for 10m", "0.5", "é",
)  # fmt: skip


class _TooSlowError(BaseException):
    """An input took longer than any may."""


@dataclass
class Fuzz:
    """A folder of good files, and what has failed."""

    folder: Path
    seed: int
    failures: list[str] = field(default_factory=list)
    num_refused: int = 0

    def __post_init__(self) -> None:
        good = self.folder / "good"
        good.mkdir()
        with _muffled():
            self.places = good_files(good)
        for word, text in (
            ("KEYS", "key,count\na,100\nb,5\n"),
            ("TRACE", "time,rate\n0s,5k/s\n1m,8k/s\n"),
            ("BOMB", BOMB),
        ):
            file = good / word.lower()
            file.write_text(text)
            self.places[word] = str(file)
        with _muffled():
            self.kinds = kinds(self.places)
        loop = good / "loop"
        loop.symlink_to(loop)
        self.places |= {"LOOP": str(loop), "CHILD": f"{good / 'bomb'}/child", "FOLDER": str(good)}
        self.server = _History()
        self.places["SERVER"] = self.server.address

    def input(self, number: int) -> None:
        """Make and try one input."""
        rng = random.Random(f"{self.seed} {number}")
        place = self.folder / "input"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        chance = rng.random()
        if chance < 0.06:
            self._call(number, rng)
            return
        kind = rng.choice(self.kinds)
        with deeper():
            file = self._damaged(rng, kind, place)
        if kind.calls:
            call = rng.choice(kind.calls)
            self._try(number, f"{kind.name} {file}", place, lambda: _called(call, file))
            return
        command = list(rng.choice(kind.commands))
        if chance < 0.2:
            command += [rng.choice(_OPTIONS), rng.choice(_ANSWERS)]
        if chance < 0.12:
            command[rng.randrange(1, len(command))] = rng.choice(_ANSWERS)
        places = {**self.places, "FILE": str(file), "OUT": str(place / "out.html")}
        arguments = [places.get(word, word) for word in command]
        is_json = kind.commands and "--json" in arguments
        what = " ".join(map(repr, arguments))
        self._try(number, what, place, lambda: run(arguments), is_json=bool(is_json))

    def _damaged(self, rng: random.Random, kind: Kind, place: Path) -> Path:
        file = place / kind.name
        if kind.form == "rolling":
            file = place / "eventlog_v2_app-1"
            file.mkdir()
            lines = kind.seed.split(b"\n")
            for part in range(1, 3):
                name = rng.choice(
                    (f"events_{part}_app-1", f"events_{part}_app-1", f"events_{part}")
                )
                some = b"\n".join(lines[part - 1 :: 2])
                (file / name).write_bytes(changed_lines(rng, some))
            (file / rng.choice(("appstatus_app-1", "appstatus_app-1.inprogress"))).touch()
            return file
        data = _changed(rng, kind)
        if kind.form == "server":
            inside = rng.choice(("events", "../../evil", "/etc/evil", "a/b/c", "a\\..\\b"))
            log = changed_lines(rng, (self.folder / "good" / "log").read_bytes())
            self.server.answer = data
            self.server.logs = (
                changed_bytes(rng, _zip(inside, log)) if rng.random() < 0.5 else _zip(inside, log)
            )
        file.write_bytes(data)
        return file

    def _call(self, number: int, rng: random.Random) -> None:
        name = rng.choice(list(CALLS))
        arguments = call_arguments(name)
        arguments[rng.choice(list(arguments))] = hostile_value(rng)
        sources = [self.places["PROFILE"]]
        if name == "ordered":
            name, sources = "ordered_plan", [*sources, self.places["KEYS"]]
        function = getattr(headway, name, None)
        if function is None:
            from headway.api.ordered import ordered_plan

            function = ordered_plan
        self._try(
            number,
            f"headway.{name} {arguments!r}"[:500],
            self.folder / "input",
            lambda: _called(lambda _: function(*sources, **arguments), Path()),
        )

    def _try(
        self, number: int, what: str, place: Path, action: Any, *, is_json: bool = False
    ) -> None:
        before = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}
        out, err = _Bytes(), _Bytes()
        why = ""
        for kind in (signal.SIGALRM, signal.SIGPROF):
            signal.signal(kind, _too_slow)
        signal.setitimer(signal.ITIMER_PROF, LONGEST_S)
        signal.setitimer(signal.ITIMER_REAL, 3 * LONGEST_S)
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = action()
        except _TooSlowError:
            why, code = f"longer than {LONGEST_S} s", None
        except SystemExit as error:
            why, code = f"SystemExit {error.code}", None
        except BaseException:
            why, code = traceback.format_exc(), None
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.setitimer(signal.ITIMER_REAL, 0)
        said = err.text()
        if "internal error" in said or "Traceback" in said:
            why = said
        elif code is not None and code not in list(ExitCode):
            why = f"exit code {code}: {said}"
        elif code not in (ExitCode.OK, ExitCode.INFEASIBLE, ExitCode.REGRESSION, ExitCode.OUTSIDE):
            why = why or _half_written(place, before)
            self.num_refused += 1
        elif is_json:
            why = _no_json(out.text())
        left = [path.name for path in place.rglob(".*.tmp")]
        why = why or (f"left behind: {left}" if left else "")
        if why:
            self._failed(number, what, why, place)

    def _failed(self, number: int, what: str, why: str, place: Path) -> None:
        kept = self.folder.parent / "headway-fuzz-failures" / f"{self.seed}-{number}"
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(place, kept, symlinks=True)
        (kept / "why.txt").write_text(f"{what}\n\n{why}\n", errors="backslashreplace")
        self.failures.append(f"input {number} of seed {self.seed}: {what}\n{why}\nkept in {kept}")


def _changed(rng: random.Random, kind: Kind) -> bytes:
    """The file of a kind, damaged in its values or its bytes; some are bombs."""
    if rng.random() < 0.02:
        return rng.choice((BOMB.encode(), b"", b"{}", b"[]", b"null", _gzip_bomb(), b"\0" * 10_000))
    if rng.random() < 0.3 or kind.form == "bytes":
        return changed_bytes(rng, kind.seed)
    if kind.form == "lines":
        return changed_lines(rng, kind.seed)
    data = json.loads(kind.seed) if kind.form in ("json", "server") else _yaml(kind)
    return as_json(changed_data(rng, data))


_PARSED: dict[str, Any] = {}


def _yaml(kind: Kind) -> Any:
    if kind.name not in _PARSED:
        _PARSED[kind.name] = yaml.load(kind.seed, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return _PARSED[kind.name]


def _gzip_bomb() -> bytes:
    import gzip

    return gzip.compress(b"\n" * 30_000_000)


def _zip(name: str, data: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, data)
    return packed.getvalue()


def _called(call: Any, file: Path) -> int:
    """A call of the library: it answers, or refuses with an error meant for people."""
    try:
        call(file)
    except HeadwayError as error:
        return error.exit_code
    return ExitCode.OK


def _no_json(text: str) -> str:
    """Why what a command printed as JSON is none that every reader takes."""

    def refuse(word: str) -> float:
        raise ValueError(f"the number {word}")

    try:
        json.loads(text, parse_constant=refuse)
    except ValueError as error:
        return f"no JSON: {error}: {text[:200]}"
    return ""


def _half_written(place: Path, before: dict[Path, bytes]) -> str:
    """What a refused command has changed or written."""
    for path in place.rglob("*"):
        if path.is_file() and before.get(path) != path.read_bytes():
            return f"refused, but {path.name} was written"
    return ""


def _too_slow(*_: object) -> None:
    raise _TooSlowError


class _Bytes(io.TextIOWrapper):
    """A stream of text in memory that has bytes below it, as standard output has."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", write_through=True)

    def text(self) -> str:
        self.flush()
        return self.buffer.getvalue().decode()  # type: ignore[attr-defined,no-any-return]


@contextlib.contextmanager
def _muffled() -> Iterator[None]:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield


class _History:
    """A History Server on this machine that answers what it is told to."""

    answer = logs = b""

    def __init__(self) -> None:
        history = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = history.logs if self.path.endswith("/logs") else history.answer
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                with contextlib.suppress(OSError):
                    self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.address = f"http://127.0.0.1:{server.server_address[1]}/history/app-1"


def _peak_bytes() -> int:
    """Of this program; ``getrusage`` counts what the process that started it held, too."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return 1024 * int(line.split()[1])
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main(arguments: list[str] | None = None) -> int:
    """Try inputs; 0 if none has failed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--inputs", type=int, default=2_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=1)
    asked = parser.parse_args(arguments)
    if asked.processes > 1:
        return _in_processes(asked)
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_BYTES, MOST_BYTES))
    began_s, last = time.monotonic(), asked.first + asked.inputs
    with tempfile.TemporaryDirectory(prefix="headway-fuzz-") as folder:
        fuzz = Fuzz(Path(folder), asked.seed)
        os.chdir(folder)
        for number in range(asked.first, last):
            before = len(fuzz.failures)
            fuzz.input(number)
            for failure in fuzz.failures[before:]:
                print(failure, flush=True)
            if number % 500 == 499:
                print(f"{number + 1 - asked.first} inputs", file=sys.stderr, flush=True)
        took_s = time.monotonic() - began_s
        peak_bytes = _peak_bytes()
        os.chdir("/")
    print(
        f"inputs {asked.first} to {last - 1} of seed {asked.seed}: {fuzz.num_refused} refused, "
        f"{len(fuzz.failures)} failed, {asked.inputs / took_s:.1f} a second, "
        f"{time.process_time():.0f} s of processor, at most {peak_bytes / 2**20:.0f} MiB"
    )
    return int(bool(fuzz.failures) or peak_bytes > MOST_BYTES)


def _in_processes(asked: argparse.Namespace) -> int:
    share = -(-asked.inputs // asked.processes)
    running = [
        subprocess.Popen(
            [
                *(sys.executable, "-m", "tests.fuzz.run", "--seed", str(asked.seed)),
                *("--first", str(asked.first + place * share), "--inputs", str(share)),
            ]
        )
        for place in range(asked.processes)
    ]
    return max(process.wait() for process in running)


if __name__ == "__main__":
    sys.exit(main())
