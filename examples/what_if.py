"""A plan looked at from all sides, cell by cell: run it as a script or in a notebook."""

# %% The plan: two promises, prices, the checkpoint there is.
from headway import load_profile, plan, simulate

profile = load_profile("examples/word-count.profile.yaml")
answer = plan(
    profile,
    rate="24k/s",
    target=["p99 <= 2s", "catch_up <= 5m after 10m"],
    node_types=["small:cores=2,price=0.1", "large:cores=8,price=0.38"],
    objective="cost",
    checkpoint="existing",
)
print(answer.nodes, answer.node_type and answer.node_type.name, answer.cost_per_hour)

# %% What each thing would change.
for one in answer.sensitivities:
    print(f"{one.change:<30} {one.latency_s:6.2f} s  {'ok' if one.keeps_target else 'MISSES'}")

# %% The rules of thumb beside it; had nothing kept the target, answer.nearest would say what could.
assert answer.feasible
for rule in answer.rules:
    print(f"{rule.rule:<34} {rule.nodes:3} nodes {rule.latency_s:7.2f} s {rule.keeps_target}")

# %% A burst and an outage, simulated.
result = simulate(answer, "examples/burst.csv", outages=["2m at 15m"])
print(f"late: {result.late_ratio:.1%}, p99 {result.p99_s:.1f} s")
for recovery in result.recoveries:
    print(f"in time again after {recovery.median_s:.0f} s, worst {recovery.worst_s:.0f} s")
