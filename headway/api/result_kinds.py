"""The one registry of results: which module shows those of a kind."""

from __future__ import annotations

from importlib import import_module

from headway.domain.result import Result
from headway.domain.sheet import Kind, Sheet, in_brief

#: The modules that show each kind of result: only those in use are loaded.
_MODULES = {
    kind: f"headway.{module}"
    for module, kinds in {
        "ci.formats.sheet": "check",
        "report.advice": "explored",
        "report.backtest": "backtest",
        "report.capacity": "capacity",
        "report.deadline": "deadline-plan",
        "report.difference": "diff",
        "report.dstreams": "dstreams-prediction dstreams-plan",
        "report.operators": "ordered-prediction ordered-plan ordered-simulation",
        "report.ordered": "keys",
        "report.pipelines": "pipeline-prediction pipeline-plan pipeline-simulation",
        "report.playback": "playback",
        "report.policies": "policies",
        "report.profile_sheet": "profile application-profile",
        "report.real_time": "real-time-prediction real-time-plan",
        "report.schedule": "schedule schedule-replay",
        "report.sharing": "windows",
        "report.stream_kinds": "plan prediction",
        "report.watched": "watch explained-change",
    }.items()
    for kind in kinds.split()
}


def kind_of(result: Result) -> Kind:
    """How results of its kind are shown."""
    kind: Kind = import_module(_MODULES[result.result_kind]).KINDS[result.result_kind]
    return kind


def sheet_of(result: Result) -> Sheet:
    """A result in words."""
    return kind_of(result).sheet(result)


def headline_of(result: Result) -> str:
    """A result in a sentence, without computing the rest of its sheet if it can be avoided."""
    kind = kind_of(result)
    return kind.sheet(result).headline if kind.headline is None else kind.headline(result)


def brief_of(result: Result) -> Sheet:
    """What terminals and notebooks show of a result."""
    kind = kind_of(result)
    return in_brief(kind.sheet(result)) if kind.brief is None else kind.brief(result)
