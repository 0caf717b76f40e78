"""Every error Headway raises on purpose, each with the exit code it ends a command with.

A message says what is wrong, where, what was expected and what to do about it. Infeasible and
unstable are results, not errors.
"""


class HeadwayError(Exception):
    """Base of all errors meant for the user; the command line prints it as one line.

    Examples
    --------
    >>> HeadwayError("disk full").exit_code
    1
    """

    exit_code = 1


class InputError(HeadwayError):
    """The user's input cannot be used as it is: an option, a file's content, a target.

    Examples
    --------
    >>> InputError("--rate: not a rate").exit_code
    2
    """

    exit_code = 2


class EventLogError(HeadwayError):
    """An event log that cannot be read, or holds nothing that can be profiled."""


class ProfileError(InputError):
    """A profile file that is not a valid profile of this version."""


class SparkUnavailableError(HeadwayError):
    """No usable Java or Spark on this machine."""


class SpecError(InputError):
    """Spec files with faults: the message has one line for each, with its place."""


class SolverError(HeadwayError):
    """A solver that ended without an answer, or with one that does not hold."""
