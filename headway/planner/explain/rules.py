"""Settings by the usual rules of thumb, compared by the same models as the plan."""

from __future__ import annotations

import math
from dataclasses import replace

from headway.assumptions.planning import RULE_TRIGGERS_S
from headway.assumptions.resources import BACKLOG_TIMEOUT_S, SPARK_PARTITIONS
from headway.domain import Configuration, FrontierPoint, RuleOfThumb
from headway.models.job.setting import duration_model, settled_batch_rows
from headway.planner.candidates import candidates_at
from headway.planner.certified_rate import certified_rate_per_s
from headway.planner.explained_setting import each_latency_s
from headway.planner.frontier import sustainable_rates_per_s
from headway.planner.question import Question
from headway.units import spark_trigger_text

_SOLVED_WITHIN = 1e-3  # rates have three digits

THE_PLAN = "the plan"

Setting = tuple[int, int, float]


def rules_of_thumb(
    question: Question, configuration: Configuration, plan_point: FrontierPoint
) -> tuple[RuleOfThumb, ...]:
    """The plan, whose point is ``plan_point``, and the rules, with the result of each.

    Rules without a number of nodes get that of the plan.

    **(P12)** Rules of thumb are settings like any other, and compared with (T6) like the plan.
    Dynamic allocation requests executors while tasks wait longer than a second, and removes
    executors that are idle for a minute, which never happens between batches. It settles at the
    first number of nodes whose longest level takes a second or less, with at most one slot per
    task.

    Rules about partitions are left out if a checkpoint fixes them.
    """
    ruled = _settings(question, configuration, plan_point.nodes)
    max_nodes = max(setting[0] for _, setting in ruled)
    space = replace(question.space, max_nodes=max(max_nodes, question.space.max_nodes))
    settings = candidates_at(replace(question, space=space), [setting for _, setting in ruled])
    latencies_s = each_latency_s(settings, question.rate_per_s)
    met = settings.meets(question.rate_per_s).tolist()
    by_moments_per_s = sustainable_rates_per_s(settings, _SOLVED_WITHIN).tolist()
    rates_per_s = [plan_point.sustainable_rate_per_s]  # including its rate limit
    rates_per_s += [
        certified_rate_per_s(settings.alone(index), by_moments_per_s[index])
        for index in range(1, len(ruled))
    ]
    return tuple(
        RuleOfThumb(
            rule=name,
            nodes=setting[0],
            configuration=settings.configuration(index),
            latency_s=latencies_s[index],
            keeps_target=met[index],
            sustainable_rate_per_s=rates_per_s[index],
            cost_per_hour=question.space.cost_per_hour(setting[0]),
        )
        for index, (name, setting) in enumerate(ruled)
    )


def _settings(
    question: Question, configuration: Configuration, nodes: int
) -> list[tuple[str, Setting]]:
    space = question.space
    slots, trigger_s = space.num_slots(nodes), configuration.trigger_s
    partitions = configuration.shuffle_partitions
    ruled: list[tuple[str, Setting]] = [(THE_PLAN, (nodes, partitions, trigger_s))]
    if space.shuffle_partitions is None:
        ruled += [
            ("one task per core", (nodes, slots, trigger_s)),
            ("two tasks per core", (nodes, 2 * slots, trigger_s)),
            ("three tasks per core", (nodes, 3 * slots, trigger_s)),
            ("200 shuffle partitions, Spark's default", (nodes, SPARK_PARTITIONS.value, trigger_s)),
        ]
    if space.trigger_s is None:
        ruled += [
            (f"trigger of {spark_trigger_text(rule_s)}", (nodes, partitions, rule_s))
            for rule_s in RULE_TRIGGERS_S.value
        ]
    ruled.append(("twice the nodes, for safety", (2 * nodes, partitions, trigger_s)))
    allocated = _nodes_of_dynamic_allocation(question, configuration)
    ruled.append(("dynamic allocation", (allocated, partitions, trigger_s)))
    return ruled


def _nodes_of_dynamic_allocation(question: Question, configuration: Configuration) -> int:
    """Number of nodes at which Spark's dynamic allocation settles: theory.md (P12)."""
    partitions = configuration.shuffle_partitions
    per_node = question.space.num_slots(1)
    tasks = max(stage.num_tasks(partitions) for stage in question.profile.stages)
    max_nodes = max(1, min(math.ceil(tasks / per_node), question.space.max_nodes))
    for nodes in range(1, max_nodes):
        model = duration_model(question.profile, nodes * per_node, partitions)
        rows = float(settled_batch_rows(model, question.rate_per_s, configuration.trigger_s))
        waits_s = max(float(level.at(rows)) for level in model.levels)
        if waits_s <= BACKLOG_TIMEOUT_S.value:
            return nodes
    return max_nodes
