"""What sharing the windows of a profiled query would save."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Unpack

from headway.api.arguments import arrivals_from, job_from, require_startable_tasks
from headway.api.predict import RunOptions, configuration_of
from headway.domain import JobProfile
from headway.domain.argument import read_question, takes
from headway.domain.query_questions import WindowsQuestion
from headway.domain.sharing import SharingGain
from headway.domain.window_set import WindowSet
from headway.errors import InputError, argument
from headway.formats.own_files import read_text
from headway.models.sharing.gain import keyed_costs
from headway.models.sharing.job_gain import sharing_gain
from headway.models.sharing.profiled_windows import windows_of
from headway.profiler.plan_exchanges import FusionAdvice, fusion_advice, plan_exchanges
from headway.spec.kinds.windows import SharedWindows
from headway.spec.spec_file import load_spec_of


@takes(WindowsQuestion)
def windows(
    profile: JobProfile | str | Path,
    windows: Sequence[str] = (),
    *,
    queries: str | Path | None = None,
    num_keys: int | None = None,
    **options: Unpack[RunOptions],
) -> SharingGain:
    """Batch time, window latency and state of a query if its windows are counted in a shared way.

    They are predicted from the profile of the query as it is, before it is rewritten.

    Parameters
    ----------
    profile : JobProfile or path
        The query, profiled while it counts windows directly.
    windows : sequence of str
        E.g. ``["1h every 5m", "10m"]``; those of the profiled query by default.
    queries : path, optional
        A spec file of the kind SharedWindows: several queries that count windows of the same rows,
        in place of ``windows``. Its rate and trigger are used if none is given here.
    num_keys : int, optional
        Number of distinct keys in the stream; by default it grows with the rows as profiled.
    rate, trigger, executors, cores, partitions, task_cpus
        As in :func:`headway.predict`; as profiled by default.

    Raises
    ------
    InputError
        If the profile has no windows of a fixed size, or a value is invalid.
    """
    about_windows = {"windows": windows, "queries": queries, "num_keys": num_keys}
    question = read_question(WindowsQuestion, {**about_windows, **options})
    shared_windows = None
    if question.queries is not None:
        if question.windows:
            raise InputError(
                f"{argument('windows')} and {argument('queries')}: expected one of the two; a "
                "file names its windows"
            )
        shared_windows = load_spec_of(question.queries, SharedWindows)
        trigger_s = question.trigger_s
        question = replace(
            question,
            rate_per_s=question.rate_per_s or shared_windows.rate_per_s,
            trigger_s=shared_windows.trigger_s if trigger_s is None else trigger_s,
        )
    job = job_from(profile)
    require_startable_tasks(job, question.task_cpus)
    configuration = configuration_of(job.baseline, question)
    profiled_windows = windows_of(job)
    if profiled_windows is None:
        raise InputError(
            "the profiled query counts no windows of a fixed size, so the cost of a window is "
            "unknown; profile a run of the query that counts them with window(...)"
        )
    if question.num_keys is not None and keyed_costs(job) is None:
        raise InputError(
            f"{argument('num_keys')}: the profile does not say how many state rows its batches "
            "wrote; profile the query anew, from a log with its progress events"
        )
    num_stream_keys = None if question.num_keys is None else float(question.num_keys)
    rate_per_s = arrivals_from(job, question.rate_per_s).rate_per_s
    if shared_windows is None:
        window_set = WindowSet.parse(question.windows) if question.windows else profiled_windows
        return sharing_gain(
            job, configuration, window_set, rate_per_s=rate_per_s, num_keys=num_stream_keys
        )
    if configuration.trigger_s == 0.0:
        raise InputError(
            "without a trigger interval, each of several queries uses all cores that it is given; "
            "give a trigger to compare them"
        )
    return sharing_gain(
        job,
        configuration,
        shared_windows.windows(),
        rate_per_s=rate_per_s,
        num_keys=num_stream_keys,
        queries={query.name: query.windows() for query in shared_windows.queries},
    )


def fusions_of(plan: str | Path) -> tuple[FusionAdvice, ...]:
    """Exchanges of a physical plan that one exchange by common columns could replace.

    ``plan`` is a file with what ``df.explain()`` printed. Raises InputError if it does not exist,
    or contains no exchange by key.
    """
    exchanges = plan_exchanges(read_text(Path(plan), expected="what df.explain() prints"))
    if not exchanges:
        raise InputError(
            f"{plan}: no exchange by key in it; expected what df.explain() prints of a query that "
            "groups or joins"
        )
    return fusion_advice(exchanges)
