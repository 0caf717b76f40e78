"""Every error Headway raises on purpose, and the exit codes that commands end with.

A message says what is wrong, where, what was expected and what to do about it. Infeasible and
unstable are results, not errors.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import IntEnum
from importlib.util import find_spec
from types import MappingProxyType

from headway.redaction import redact

_LONGEST_MESSAGE = 1000
_TRACEBACK = "Traceback (most recent call last):"


class ExitCode(IntEnum):
    """How a command ended: the one table that commands, help, pages and tests read.

    >>> ExitCode(3).name, EXIT_CODES[ExitCode.INFEASIBLE]
    ('INFEASIBLE', 'target infeasible; the nearest feasible plan is printed')
    """

    OK = 0
    FAILURE = 1
    INVALID = 2
    INFEASIBLE = 3
    REGRESSION = 4
    OUTSIDE = 5


#: What each of them says, in words.
EXIT_CODES: Mapping[ExitCode, str] = MappingProxyType(
    {
        ExitCode.OK: "ok",
        ExitCode.FAILURE: "failure: disk, network, or an internal error of Headway",
        ExitCode.INVALID: "bad usage, or missing or invalid input",
        ExitCode.INFEASIBLE: "target infeasible; the nearest feasible plan is printed",
        ExitCode.REGRESSION: "regression against the baseline, or an error above --max-error",
        ExitCode.OUTSIDE: "outside the calibrated range, with --strict",
    }
)


# Private-use characters, which no message contains: what stands between them is an argument's name.
_ARGUMENT = "\ue000([^\ue001]+)\ue001"


def argument(name: str) -> str:
    """The name of an argument, as a part of an error's message.

    The library shows the name, since its users pass arguments; a command shows the option that sets
    the argument.

    >>> error = HeadwayError(f"{argument('node_cores')} is 0; expected at least 1")
    >>> str(error)
    'node_cores is 0; expected at least 1'
    >>> error.message_with({"node_cores": "--node-cores"})
    '--node-cores is 0; expected at least 1'
    """
    return f"\ue000{name}\ue001"


class HeadwayError(Exception):
    """Base of all errors meant for the user; the command line prints it as one line.

    >>> HeadwayError("disk full").exit_code
    <ExitCode.FAILURE: 1>
    """

    exit_code = ExitCode.FAILURE

    def __init__(self, message: str = "") -> None:
        self._marked_message = message
        super().__init__(self.message_with({}))

    def message_with(self, spellings: Mapping[str, str]) -> str:
        """The message with other spellings of the arguments that it names."""
        return re.sub(
            _ARGUMENT, lambda match: spellings.get(match[1], match[1]), self._marked_message
        )


class InputError(HeadwayError):
    """Invalid input: an option, a file's content, a target.

    >>> InputError("--rate: not a rate").exit_code
    <ExitCode.INVALID: 2>
    """

    exit_code = ExitCode.INVALID


class RefusedArgumentError(InputError):
    """An argument, or an option, that means nothing for a job of this kind."""


class EventLogError(InputError):
    """An event log that is missing, is no event log, or contains nothing that can be profiled."""


class ActuatorError(HeadwayError):
    """A requested change of a running query failed; the message says how the query runs now."""


class QueryEndedError(HeadwayError):
    """A query that is tuned ended by itself."""


class TunerLockedError(InputError):
    """Another tuner holds the state file."""


class SparkUnavailableError(HeadwayError):
    """No usable Java or Spark on this machine."""


class MissingPackagesError(HeadwayError):
    """Missing packages that a plain installation does not include; the message names the extra."""


def require_packages(extra: str, feature: str, *packages: str) -> None:
    """Raise MissingPackagesError if packages are missing that a plain installation has not.

    ``extra`` is the extra of ``pyproject.toml`` that includes them, ``feature`` what needs them, as
    the beginning of a sentence; ``packages`` are looked for but not loaded.

    >>> require_packages("capacity", "planning a fleet", "sys", "no_such_solver")
    Traceback (most recent call last):
    ...
    headway.errors.MissingPackagesError: planning a fleet needs no_such_solver, which is not
    installed: pip install 'headway[capacity]'
    """
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        are = "is" if len(missing) == 1 else "are"
        names = " and ".join(filter(None, (", ".join(missing[:-1]), missing[-1])))
        raise MissingPackagesError(
            f"{feature} needs {names}, which {are} not installed: pip install 'headway[{extra}]'"
        )


class SpecError(InputError):
    """Spec files with faults: the message has one line for each, with its place."""


class InfeasibleError(HeadwayError):
    """The operation needs plans that meet their targets, and some cannot: a line for each."""

    exit_code = ExitCode.INFEASIBLE


class SolverError(HeadwayError):
    """A solver that ended without an answer, or with an invalid one."""


def first_line(error: object) -> str:
    r"""The first line of an error's message, redacted; Spark's have a page of stack below it.

    Of a failed Python function, Spark has a traceback, whose error follows the frames.

    >>> first_line(ValueError("no such topic\n\tat org.apache")), first_line(ValueError())
    ('no such topic', 'no message')
    >>> first_line(f"Return Message: {_TRACEBACK}\n  File 'a.py'\nKeyError: 'id'\n\n\tat py4j")
    "Return Message: KeyError: 'id'"
    """
    try:
        text = str(error).strip()
        before, _, frames = text.partition(_TRACEBACK)
        line = before.splitlines()[0] if before else text.splitlines()[0]
        if frames and "\n" not in before:
            # Of several tracebacks, the last one is that of the error that was raised.
            frames = frames.rpartition(_TRACEBACK)[2]
            raised = (end for end in frames.splitlines() if end and not end[0].isspace())
            line = before + next(raised, _TRACEBACK)
        return redact(line, longest=_LONGEST_MESSAGE)
    except Exception:  # the JVM of the error may be gone
        return "no message"
