"""The policy choice of a running gate, made in a separate process.

Simulating takes seconds of Python, and a thread that does so delays the arbiter of a running gate
by five milliseconds each time that the arbiter wants to run.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Sequence

from headway.domain import Policy
from headway.models.simulation.gate import QueryWork
from headway.processes import python_command, python_environment
from headway.turns.scheduling import choose

_LESS_URGENT = 10
_ANSWER = "from headway.api.choosing import answer; answer()"


def choose_in_own_process(
    works: Sequence[QueryWork], cores: float, requested_policy: Policy
) -> tuple[Policy, int]:
    """The policy that simulation prefers, and how many at once; in this process if none starts."""
    try:
        completed = subprocess.run(
            python_command("-c", _ANSWER),
            input=pickle.dumps((list(works), cores, requested_policy)),
            capture_output=True,
            check=True,
            env={**os.environ, **python_environment()},
        )
        policy, at_once = completed.stdout.decode().split()
        return Policy(policy), int(at_once)
    except (OSError, TypeError, ValueError, subprocess.SubprocessError):
        return choose(works, cores, requested_policy)


def answer() -> None:
    """In that process: the works on standard input, the choice on standard output."""
    if hasattr(os, "nice"):
        os.nice(_LESS_URGENT)
    policy, at_once = choose(*pickle.load(sys.stdin.buffer))
    sys.stdout.write(f"{policy} {at_once}\n")
