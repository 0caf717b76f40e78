"""The process that answers calls: confined to a folder, and ended if a call takes too long.

It reads a call from each line of its standard input, and answers it on a line of its output.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from headway.cli.assistants.calls import Answer, answer, refusal
from headway.cli.assistants.confinement import confine
from headway.errors import ExitCode
from headway.processes import python_command, python_environment

LONGEST_CALL_S = 120


class Worker:
    """Such a process as seen from outside: started when it is needed, and anew after it ended."""

    def __init__(
        self, folder: Path, scratch: Path, *, longest_call_s: int = LONGEST_CALL_S
    ) -> None:
        self._command = python_command("-m", __name__, str(folder), str(longest_call_s))
        self._longest_call_s = longest_call_s
        self._environment = {
            **{name: value for name, value in os.environ.items() if name != "HEADWAY_DEBUG"},
            **python_environment(),
            "OPENBLAS_NUM_THREADS": "1",
            "TMPDIR": str(scratch),
        }
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def answer(self, tool_name: str, arguments: Mapping[str, Any]) -> Answer:
        """The answer of the process; calls wait for one another."""
        with self._lock:
            process = self._process = self._process or self._started()
            assert process.stdin is not None and process.stdout is not None, "pipes were asked for"
            try:
                process.stdin.write(json.dumps([tool_name, arguments]).encode() + b"\n")
                process.stdin.flush()
                line = process.stdout.readline()
            except BrokenPipeError:
                line = b""
            if line:
                return Answer(**json.loads(line))
            self._process = None
            ended_by = -_ended(process)
        if ended_by == signal.SIGALRM:
            why = f"took longer than {self._longest_call_s} s; ask for less, or use a terminal"
        else:
            why = "ended without an answer; its last words are in the log of the server"
        return refusal([f"{tool_name}: {why}"], ExitCode.FAILURE)

    def stop(self) -> None:
        """End the process, whatever it does."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            _ended(process)

    def _started(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=self._environment,
            start_new_session=True,
        )


def _ended(process: subprocess.Popen[bytes]) -> int:
    """The exit code of a process, whose pipes are closed."""
    with suppress(BrokenPipeError), process:
        pass
    return process.wait()


def main() -> None:
    """Answer calls until there are no more."""
    folder, longest_call_s = Path(sys.argv[1]).resolve(), int(sys.argv[2])
    # What else writes to standard output must not look like an answer.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="ascii")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    os.chdir(folder)
    # What most calls need is loaded: the time of a call is spent on its question alone.
    import headway.api.plan
    import headway.api.predict
    import headway.api.simulate  # noqa: F401

    confine(folder)
    for line in sys.stdin.buffer:
        tool_name, arguments = json.loads(line)
        signal.alarm(longest_call_s)
        answers.write(json.dumps(asdict(answer(tool_name, arguments, folder))) + "\n")
        answers.flush()
        signal.alarm(0)


if __name__ == "__main__":
    main()
