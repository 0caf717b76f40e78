"""The gate of a build: locked plans compared with current plans."""

from headway.domain.fleet_questions import Limits
from headway.gate.nouns import Finding, Held, Level, Report, Rule

__all__ = ["Finding", "Held", "Level", "Limits", "Report", "Rule"]
