"""The gate of a build: what was planned once, held against what is planned now."""

from headway.gate.nouns import Finding, Held, Level, Limits, Report, Rule

__all__ = ["Finding", "Held", "Level", "Limits", "Report", "Rule"]
