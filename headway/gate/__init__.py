"""The gate of a build: locked plans compared with current plans."""

from headway.gate.nouns import Finding, Held, Level, Limits, Report, Rule

__all__ = ["Finding", "Held", "Level", "Limits", "Report", "Rule"]
