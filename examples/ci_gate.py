"""A CI gate in five lines: fail the build when the promise no longer fits the cluster."""

import headway

plan = headway.plan("examples/word-count.profile.yaml", rate="24k/s", target="p99 <= 2s")
print(f"{plan.nodes} node(s): {plan.target.statistic} up to {plan.planned_latency_s:.2f} s")
assert plan.feasible and plan.nodes <= 2, "; ".join(plan.binding)
