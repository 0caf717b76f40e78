"""Turns: which query of one application runs next."""

from __future__ import annotations

from headway.assumptions import Assumption

FIRST_SPREAD_RATIO = Assumption(
    name="Prior for the spread of batch durations under a gate",
    value=0.3,
    unit="-",
    source="judgement: wide enough for a query that nobody knows yet",
    influences="slack and leases of the first batches of a query under a gate",
)
COMPILED_BATCHES = Assumption(
    name="First batches of a query that a gate ignores",
    value=2,
    unit="batches",
    source="judgement: Spark compiles what it runs for the first time",
    influences="what a gate expects of a batch",
)
FEWEST_TO_CORRECT = Assumption(
    name="Minimum batches to correct a profile by measured durations",
    value=5,
    unit="batches",
    source="judgement: fewer tell no median",
    influences="what a gate expects of a batch",
)
FEWEST_FOR_A_LINE = Assumption(
    name="Minimum batches to fit a line through measured durations",
    value=10,
    unit="batches",
    source="judgement: fewer tell fixed time and time per row not apart",
    influences="what a gate expects of a batch",
)
KNOWN_BATCHES = Assumption(
    name="Minimum batches of each query before a gate sizes itself",
    value=5,
    unit="batches",
    source="judgement: fewer tell neither a mean nor a spread",
    influences="when a gate decides how many queries go at once, and by which policy",
)
LEARNED_NOISE_RATIO = Assumption(
    name="Spread of the work of a batch while a gate learns",
    value=0.2,
    unit="-",
    source="judgement: that of batches of one size on a machine with others on it",
    influences="the policy that auto chooses",
)
LEASE_RATIO = Assumption(
    name="Lease of a turn, over the p99.9 of a batch",
    value=3.0,
    unit="-",
    source="judgement: a batch in a thousand is longer than that batch, none three times",
    influences="when a query that got a turn counts as dead",
)
SHORTEST_LEASE_S = Assumption(
    name="Minimum lease of a turn",
    value=30.0,
    unit="s",
    source="judgement: a full garbage collection takes seconds",
    influences="when a query that got a turn counts as dead",
)
HEARTBEAT_WITHIN_S = Assumption(
    name="Heartbeat timeout of a gate",
    value=5.0,
    unit="s",
    source="judgement: longer than a pause of a JVM, shorter than an alarm",
    influences="how long queries wait for a gate that has died",
)
LONGEST_WAIT_RATIO = Assumption(
    name="Maximum wait of a query, over its tightest limit",
    value=3.0,
    unit="-",
    source="judgement: nobody starves, and few are let in before it is their turn",
    influences="turns under load",
)
SHORTEST_LONGEST_WAIT_S = Assumption(
    name="Lower bound of the maximum wait of a query",
    value=5.0,
    unit="s",
    source="judgement: below, the rule would decide every turn",
    influences="turns under load",
)
MEMORY_LOOK_AHEAD_S = Assumption(
    name="Maximum duration of memory relief",
    value=3.0,
    unit="s",
    source="Klink (SIGMOD 2021)",
    influences="turns where memory is short (G7)",
)
LEAST_GAIN_RATIO = Assumption(
    name="Minimum latency gain for a policy to be recommended",
    value=0.1,
    unit="-",
    source="judgement: less is not worth another component",
    influences="the verdict of headway schedule",
)
SIMULATED_S = Assumption(
    name="Minimum simulated time of a policy",
    value=340.0,
    unit="s",
    source="judgement: some hundred batches of usual queries",
    influences="figures of headway schedule",
)
SIMULATED_WARM_UP_S = Assumption(
    name="Warm-up of a simulation",
    value=40.0,
    unit="s",
    source="judgement: queues have settled by then",
    influences="figures of headway schedule",
)
WINDOWS_SIMULATED = Assumption(
    name="Minimum simulated windows of the longest slide",
    value=25,
    unit="windows",
    source="judgement: fewer tell no p99",
    influences="simulated time, and so figures of headway schedule",
)
LONGEST_SIMULATED_S = Assumption(
    name="Maximum simulated time of a policy",
    value=2400.0,
    unit="s",
    source="judgement: seconds of work",
    influences="figures of headway schedule for windows of long slides",
)
NEARLY_ALL_BUSY_RATIO = Assumption(
    name="Utilisation below which queries keep up",
    value=0.98,
    unit="-",
    source="judgement: above, a simulation of finite length decides by its backlog",
    influences="whether headway schedule says that queries keep up",
)
