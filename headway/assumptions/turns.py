"""Turns: which query of one application runs next, and what shared work must win."""

from __future__ import annotations

from headway.assumptions import Assumption

FIRST_SPREAD_RATIO = Assumption(
    name="Spread of batch durations before enough of them were seen",
    value=0.3,
    unit="-",
    source="judgement: wide enough for a query that nobody knows yet",
    influences="slack and leases of the first batches of a query under a gate",
)
COMPILED_BATCHES = Assumption(
    name="First batches of a query that a gate does not learn from",
    value=2,
    unit="batches",
    source="judgement: Spark compiles what it runs for the first time",
    influences="what a gate expects of a batch",
)
FEWEST_TO_CORRECT = Assumption(
    name="Batches from which on a profile is corrected by what was seen",
    value=5,
    unit="batches",
    source="judgement: fewer tell no median",
    influences="what a gate expects of a batch",
)
FEWEST_FOR_A_LINE = Assumption(
    name="Batches from which on a line is fitted through what was seen",
    value=10,
    unit="batches",
    source="judgement: fewer tell fixed time and time per row not apart",
    influences="what a gate expects of a batch",
)
KNOWN_BATCHES = Assumption(
    name="Batches of each query after which a gate sizes itself",
    value=5,
    unit="batches",
    source="judgement: fewer tell neither a mean nor a spread",
    influences="when a gate decides how many queries go at once, and by which policy",
)
LEASE_RATIO = Assumption(
    name="Lease of a turn, over a very long batch",
    value=3.0,
    unit="-",
    source="judgement: a batch in a thousand is longer than that batch, none three times",
    influences="when a query that got a turn counts as dead",
)
SHORTEST_LEASE_S = Assumption(
    name="Shortest lease of a turn",
    value=30.0,
    unit="s",
    source="judgement: a full garbage collection takes seconds",
    influences="when a query that got a turn counts as dead",
)
HEARTBEAT_WITHIN_S = Assumption(
    name="Time without a sign of the gate after which queries go by their own triggers",
    value=5.0,
    unit="s",
    source="judgement: longer than a pause of a JVM, shorter than an alarm",
    influences="how long queries wait for a gate that has died",
)
LONGEST_WAIT_RATIO = Assumption(
    name="Wait after which a query goes first, over the tightest limit",
    value=3.0,
    unit="-",
    source="judgement: nobody starves, and few are let in before it is their turn",
    influences="turns under load",
)
SHORTEST_LONGEST_WAIT_S = Assumption(
    name="The same wait at least",
    value=5.0,
    unit="s",
    source="judgement: below, the rule would decide every turn",
    influences="turns under load",
)
MEMORY_LOOK_AHEAD_S = Assumption(
    name="Longest that memory is relieved at a time",
    value=3.0,
    unit="s",
    source="Klink (SIGMOD 2021)",
    influences="turns where memory is short (G7)",
)
REPARTITION_SAFETY_RATIO = Assumption(
    name="Slots saved by a new partitioning, over what catching up costs",
    value=2.0,
    unit="-",
    source="judgement: the load may turn before the cost is won back; Enorm (2016) decides "
    "once per longest window, doi:10.1145/2933267.2933315",
    influences="whether key groups are moved",
)
LEAST_GAIN_RATIO = Assumption(
    name="Gain in latency from which on a policy is recommended",
    value=0.1,
    unit="-",
    source="judgement: less is not worth another component",
    influences="the verdict of headway schedule",
)
SIMULATED_S = Assumption(
    name="Simulated time of each policy at least",
    value=340.0,
    unit="s",
    source="judgement: some hundred batches of usual queries",
    influences="figures of headway schedule",
)
SIMULATED_WARM_UP_S = Assumption(
    name="Simulated time that is not counted",
    value=40.0,
    unit="s",
    source="judgement: queues have settled by then",
    influences="figures of headway schedule",
)
WINDOWS_SIMULATED = Assumption(
    name="Windows of the longest slide that are simulated",
    value=25,
    unit="windows",
    source="judgement: fewer tell no p99",
    influences="simulated time, and so figures of headway schedule",
)
LONGEST_SIMULATED_S = Assumption(
    name="Simulated time of each policy at most",
    value=2400.0,
    unit="s",
    source="judgement: seconds of work",
    influences="figures of headway schedule for windows of long slides",
)
NEARLY_ALL_BUSY_RATIO = Assumption(
    name="Share of busy cores below which queries keep up",
    value=0.98,
    unit="-",
    source="judgement: above, a simulation of finite length decides by its backlog",
    influences="whether headway schedule says that queries keep up",
)
