"""Terms that pages explain in tooltips, in the words of docs/glossary.md."""

from __future__ import annotations

import re

from markupsafe import Markup, escape

#: A test holds these to docs/glossary.md.
DEFINITIONS = {
    "batch duration": "Time that Spark takes for one batch (`triggerExecution` of its progress).",
    "trigger interval": "Time between the starts of two batches; 0 means as fast as possible.",
    "rate limit": "Maximum number of rows per batch.",
    "shuffle partitions": (
        "Number of tasks behind an exchange. A checkpoint fixes it for stateful queries."
    ),
    "backlog": "Rows that are available at the source and not yet processed.",
    "profile": "The costs of a job, fitted to its event logs.",
    "tuple latency": (
        "Time from when a row is available at the source until its batch is committed."
    ),
    "window latency": "Time from the end of a window until its final result is committed.",
    "target": "An upper limit that a plan must meet.",
    "binding constraint": (
        "What prevents a cheaper plan: a target, or a minimum of the search space."
    ),
    "max rate within target": "Highest rate at which a configuration meets all targets.",
    "stable up to": "Highest rate at which the backlog does not grow, whatever the latency.",
    "planned latency": (
        "Upper end of the prediction interval at the confidence level of the plan, which is "
        "compared with the target."
    ),
    "input rate": "Rows that arrive per second.",
    "utilisation": (
        "Share of time that the query is busy, also as fast as possible: mean batch duration over "
        "the mean time between batch starts. A batch runs only if there are rows."
    ),
    "offered load": (
        "Processing time that one second of input adds: time per row times input rate. Unstable "
        "from 1 on."
    ),
    "saturation": "Utilisation close to 1, where latency grows without bound.",
    "error": "Predicted over measured, minus one.",
    "prediction interval": (
        "Range that contains the true value with the stated probability (90% unless stated "
        "otherwise)."
    ),
    "confidence level": "Probability with which a plan must meet its targets.",
}
_TERM = re.compile(
    r"\b(" + "|".join(sorted(map(re.escape, DEFINITIONS), key=len, reverse=True)) + r")s?\b",
    re.IGNORECASE,
)


def explained(used_terms: list[str], text: str) -> Markup:
    """A text of Headway or of a user, escaped, its first term with its definition.

    The term is added to those that the page has used.
    """
    match = _TERM.search(text)
    if match is None:
        return escape(text)
    term = match[1].lower()
    used_terms.append(term)
    name = f"tip-{len(used_terms)}"
    return Markup(
        '{}<span class="term" tabindex="0" aria-describedby="{}">{}'
        '<span class="tip" role="tooltip" id="{}">{}</span></span>{}'
    ).format(text[: match.start()], name, match[0], name, DEFINITIONS[term], text[match.end() :])
