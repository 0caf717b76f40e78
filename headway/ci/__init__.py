"""The gate of a build: locked plans compared with current plans."""

from headway.ci.nouns import Finding, Held, Level, Report, Rule
from headway.domain.fleet_questions import Limits

__all__ = ["Finding", "Held", "Level", "Limits", "Report", "Rule"]
