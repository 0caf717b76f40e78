"""Turns: which query of one application runs next."""

from __future__ import annotations

from headway.assumptions import Assumption, batches, seconds

FIRST_SPREAD_RATIO = Assumption(
    name="Prior for the spread of batch durations under a gate",
    value=0.3,
    source="judgement: wide enough for an unknown query",
    influences="slack and leases of the first batches of a query under a gate",
)
COMPILED_BATCHES = batches(
    name="First batches of a query that a gate ignores",
    value=2,
    source="judgement: Spark compiles code that it runs for the first time",
    influences="the batch duration that a gate expects",
)
FEWEST_TO_CORRECT = batches(
    name="Minimum batches to correct a profile by measured durations",
    value=5,
    source="judgement: fewer do not determine a median",
    influences="the batch duration that a gate expects",
)
FEWEST_FOR_A_LINE = batches(
    name="Minimum batches to fit a line through measured durations",
    value=10,
    source="judgement: fewer do not separate fixed time from time per row",
    influences="the batch duration that a gate expects, and when it sizes itself for queries "
    "without a profile",
)
KNOWN_BATCHES = batches(
    name="Minimum batches of each query with a profile before a gate sizes itself",
    value=5,
    source="judgement: fewer determine neither a mean nor a spread",
    influences="when a gate decides how many queries run at once, and by which policy",
)
LEARNED_NOISE_RATIO = Assumption(
    name="Spread of the work of a batch while a gate learns",
    value=0.2,
    source="judgement: that of batches of one size on a shared machine",
    influences="the policy that auto chooses",
)
LEASE_RATIO = Assumption(
    name="Lease of a turn, over the p99.9 of a batch",
    value=3.0,
    source="judgement: one batch in a thousand exceeds the p99.9, but none takes three times as "
    "long",
    influences="when a query that has its turn counts as dead",
)
SHORTEST_LEASE_S = seconds(
    name="Minimum lease of a turn",
    value=30.0,
    source="judgement: a full garbage collection takes seconds",
    influences="when a query that has its turn counts as dead",
)
HEARTBEAT_WITHIN_S = seconds(
    name="Heartbeat timeout of a gate",
    value=5.0,
    source="judgement: longer than a pause of a JVM, shorter than the time to an alarm",
    influences="how long queries wait for a gate that has died",
)
LONGEST_WAIT_RATIO = Assumption(
    name="Maximum wait of a query, over its tightest limit",
    value=3.0,
    source="judgement: no query starves, and few run before their turn",
    influences="turns under load",
)
SHORTEST_LONGEST_WAIT_S = seconds(
    name="Lower bound of the maximum wait of a query",
    value=5.0,
    source="judgement: with less, this rule would decide every turn",
    influences="turns under load",
)
MEMORY_LOOK_AHEAD_S = seconds(
    name="Maximum duration of memory relief",
    value=3.0,
    source="Klink (SIGMOD 2021)",
    influences="turns if memory is short (G7)",
)
LEAST_GAIN_RATIO = Assumption(
    name="Minimum latency gain for a policy to be recommended",
    value=0.1,
    source="judgement: a smaller gain is not worth another component",
    influences="the verdict of headway schedule",
)
SIMULATED_S = seconds(
    name="Minimum simulated time of a policy",
    value=340.0,
    source="judgement: a few hundred batches of typical queries",
    influences="figures of headway schedule",
)
SIMULATED_WARM_UP_S = seconds(
    name="Warm-up of a simulation",
    value=40.0,
    source="judgement: by then, queues have settled",
    influences="figures of headway schedule",
)
WINDOWS_SIMULATED = Assumption(
    name="Minimum simulated windows of the longest slide",
    value=25,
    unit="windows",
    source="judgement: fewer do not determine a p99",
    influences="simulated time, and thus figures of headway schedule",
)
LONGEST_SIMULATED_S = seconds(
    name="Maximum simulated time of a policy, unless the load is high",
    value=2400.0,
    source="judgement: takes seconds to compute",
    influences="figures of headway schedule for windows with long slides",
)
LOAD_SIMULATED_LONGER_RATIO = Assumption(
    name="Load from which simulations become longer",
    value=0.7,
    source="simulated: below it, the p99 of 300 s is within 2% of that of 40,000 s on average; at "
    "0.9 it is 16% lower, at 0.95 53%",
    influences="simulated time, and thus figures of headway schedule",
)
RELAXATIONS_SIMULATED = Assumption(
    name="Simulated time at a high load, over the relaxation time",
    value=240.0,
    source="simulated: at loads of 0.8 to 0.95, the p99 then is within about a tenth",
    influences="simulated time, and thus figures of headway schedule",
)
MOST_SIMULATED_BATCHES = batches(
    name="Maximum batches for which a simulation becomes longer",
    value=10_000,
    source="judgement: takes half a second to compute",
    influences="simulated time, and thus which targets headway schedule calls too close to tell",
)
SIMULATED_PARTS = Assumption(
    name="Parts of a simulation that show the statistical error of its figures",
    value=20,
    unit="parts",
    source="judgement: fewer determine no deviation, and shorter ones depend on each other",
    influences="which targets headway schedule calls too close to tell",
)
RELAXATIONS_OF_PART = Assumption(
    name="Minimum length of such a part, over the relaxation time",
    value=3.0,
    source="judgement: the parts then hardly depend on each other",
    influences="which targets headway schedule calls too close to tell",
)
FEWEST_SIMULATED_PARTS = Assumption(
    name="Minimum number of such parts for a verdict",
    value=4,
    unit="parts",
    source="judgement: fewer do not determine a deviation",
    influences="which targets headway schedule calls too close to tell",
)
NEARLY_ALL_BUSY_RATIO = Assumption(
    name="Utilisation below which queries keep up",
    value=0.98,
    source="judgement: above it, the backlog at the end of a simulation decides",
    influences="whether headway schedule reports that queries keep up",
)
