"""The gate of a build: what was planned once, held against what would be planned now.

Light to import: plans are made by the calls that need them.
"""

from headway.formats.lock_file import Lock, Locked, load_lock, save_lock
from headway.gate.check import check
from headway.gate.lock import lock
from headway.gate.nouns import Finding, Held, Level, Limits, Report, Rule

__all__ = [
    "Finding",
    "Held",
    "Level",
    "Limits",
    "Lock",
    "Locked",
    "Report",
    "Rule",
    "check",
    "load_lock",
    "lock",
    "save_lock",
]
