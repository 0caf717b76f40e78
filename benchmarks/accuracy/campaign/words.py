"""What the accuracy page says between its tables."""

from __future__ import annotations

_PREFACE = """\
Real Structured Streaming queries on this page's machine: rows arrive on the wall clock, their
latency is measured from that arrival to the commit of their batch, window latency from the end of
the window to the commit of the last batch that emitted it. Every workload is fitted on three
settings (as fast as possible with 2 partitions at 30% of what it can carry, 3 s and 2 partitions
at 60%, 2 s and 8 partitions at 45%: the smallest batches, the largest, and other partitions,
which is what `headway profile --advise` asks for), and judged on settings that were never fitted.
The fitted settings and how often each is repeated stand in `benchmarks/accuracy/fit-set.json`,
which is committed before the first run; a measured run names the digest of that file, and runs of
another one are refused. @HOW@ So a profile is fitted on six runs: both repeats of three settings.
@GIVEN@

Errors are predicted over measured, minus one, of single runs. They count for runs whose backlog did
not grow (or whose batches ended in time all the same), beside which other processes used less than
0.3 cores, and whose prediction does not itself warn of saturation; runs that their own prediction
leaves out have a table of their own, with a total in which they count. The two columns *within* are
the shares within 10% (mean) and 15% (p99). The floor is the same statistic of the same runs, with
the other repeat of the setting in place of the prediction: one over the other, minus one, both
ways.

What was changed after the first repeats were looked at, and what it was chosen on: which settings
are fitted (until then a run of 1 s at 30% stood in place of the one as fast as possible; six
choices were tried on the first repeats, the second ones were run after that); the spread that makes
the intervals, (E5) (found in the fitted runs of the Kafka lane); and how durations go on in a JVM
older than any profiled, (E6) (found in the runs fitted on one core, and held against the recorded
runs of `docs/recorded-accuracy.md`). Predictions for streams of bulks are given the rate that came
about in a run: at random times it is up to a quarter off what was asked for.
"""

_HOW_BEFORE = (
    "Every setting is run twice for 12 s and more, all of them once before any of them again, in "
    "random order; on two cores the second repeats are in JVMs of their own."
)
_HOW = (
    "Workloads are drawn into blocks; in each every setting is run once before any of them again, "
    "in random order, for {measured_s:g} s and more after its warm-up; every repeat of a block has "
    "a JVM of its own."
)
_GIVEN_BEFORE = (
    "The runs of this page were predicted with the age of their JVM and the mean size of their "
    "state; from the next campaign on predictions are given what a user could say before: the age "
    "to the nearest doubling of a minute, and a state that grows by what the profile says of its "
    "growth."
)
_GIVEN = (
    "Predictions are given what a user could say before the run: the age of the JVM to the nearest "
    "doubling of a minute, and a state that grows by what the profile says of its growth."
)


def preface(*, of_fit_set: bool, measured_s: float) -> str:
    """What the page is about; results of before the fit set was a file say how they were made."""
    how = _HOW.format(measured_s=measured_s) if of_fit_set else _HOW_BEFORE
    given = _GIVEN if of_fit_set else _GIVEN_BEFORE
    return _PREFACE.replace("@HOW@", how).replace("@GIVEN@", given)


FINDINGS = """\
Found in the event logs of the campaign of 2026-11-21 and 22, and in the counters of JVM and
machine beside it:

* **The machine's speed.** The same batch, again and again in one JVM, lasts longer and shorter for
  minutes at a time, and work that has nothing to do with Spark goes with it (table above): the loop
  of an interpreter and copies in memory, which share what cores of one host share, but not a hash,
  which needs the clock of the core alone. In the campaign the mean duration of a batch differs
  between two repeats by a standard deviation of 13% of one run on a trigger and 22% as fast as
  possible; nothing else ran (0.02 to 0.06 cores), and the hypervisor reported 0 to 0.07 cores
  stolen. No profile can predict such times: this is the floor. As fast as possible, where a batch
  brings the next one its rows, a latency moves several times as much as a duration.
* **Tried and left out.** Phases of a run share its speed: what the files of the checkpoint take and
  what tasks take lie off together (correlation 0.55 over 183 runs), but fits of three runs whose
  times are first divided by that speed predict tasks no better (15.2% off instead of 15.3%). An
  added part of the noise and its persistence, estimated from the log, leave the p99 of the recorded
  word counts as it is, and make that of short runs on a busy machine worse (as fast as possible
  35% off instead of 23 to 27%).
* **Tasks behind a combine** take the same time whatever the partitions: 20 to 33 ms at 1 to 32
  partitions of the aggregation, predicted 38 to 20 ms, since a fixed time that was too short put
  the rest on rows. The fixed time is now that of batches that read next to nothing (E32).
* **The same batch on more slots.** Launching a task takes 5 to 7 ms on 1 or 2 slots, 9 on 4 and 20
  to 26 on 16 (scheduler, deserialization, result), one after the other; short tasks behind an
  exchange, all at once on 2 cores, take 34 to 133 ms instead of 37. From one executor to two, tasks
  of the state take twice the predicted time in a JVM of 70 to 120 s and 1.6 times at 150 to 210 s,
  since each executor has compiled half as much at the same age. Neither is modelled.
* **Backlogs cost what live rows cost.** The backlog of the aggregation is predicted too slow, in
  both repeats. Run again beside live runs of as many rows, four settings of backlogs and two live
  ones twice each, a row took 8.3 us of processor time from a backlog and 8.2 live, single runs
  between 7.4 and 8.9; the runs of the page took 6.8, which is the machine's speed again.
* **Sustainable rates** are predicted within 10% for 9 of 14 workloads. Fits of runs that lie 13%
  apart, held against backlogs that lie 7% apart (single runs), leave some 10%, within which two
  thirds can be expected.
* **Bursts on a beat are bounded.** The bursty source sends the rows of 1.3 s within 0.4 s. Batches
  on a trigger of 1 s are at most 1.37 times their mean (14 of them, twice), where the law that has
  their variance, which knows no beat, has one in a hundred above twice it: p99 is predicted too
  long. Nor does the variance grow with the interval: variance over mean, per row and second, is
  0.27 s at batches of 0.3 s, 0.17 s at 1 s and 0.06 s at 3 s. The workload `bulks`, whose rows come
  at random times, has no beat, and its means and p99 are predicted 8 and 10% off (medians). Its
  intervals hold half of the time only: they speak for all bulks that will ever come, and a run of
  12 s sees 10 to 100 of them, which made its rate 0.93 to 1.26 times what was asked for.
* **More slots than profiled.** From one core to two, tasks are predicted too short where both cores
  are in use: what else a JVM does (compilers, collector, driver) had the idle core to itself. From
  one executor to two also because each compiles what half of the tasks teach it: tasks of the state
  took twice as long. Intervals are wider there by what such errors taught
  (docs/scaling-accuracy.md); those of this page, and what it calls calibrated (nothing outside of
  what was profiled), are of the rule before that.
* **Small batches cost more per row.** Fitted without batches as small as those of a query that runs
  as fast as possible, ten of thirteen workloads were predicted 12 to 32% too short there at 30%
  load: tasks of 3,300 to 6,600 rows took 8 to 27 ms longer than a line through 13,000 rows and more
  has it, part of it waiting (pandas 91 ms for 64 predicted, deduplication 54 for 43, state tasks of
  sessions 54 for 31). With such a run among the three, all other settings gained too: of those that
  no choice was fitted on, all came within 10% on the first repeats. `--advise` now asks for it
  first.
* **Generated code of other queries.** Spark keeps a hundred pieces of generated code per session.
  In a trial of this campaign the heap held exactly 100 after the probes and six runs, so that a run
  could find its own thrown away, compile it anew and run it cold; the just-in-time compilers took
  128 s of processor time in the first four minutes. What is shown here keeps all of it
  (`spark.sql.codegen.cache.maxEntries`); compilers take 0.35 s per run (median; nine tenths below
  1.8 s). Sessions that run many queries have the same trouble.
* **Watermarks are constants in the code**: tumbling and sliding windows, sessions and deduplication
  compile one class in every batch, the join two; queries without a watermark none.
* **The first batch of a query** takes longer than its rows explain, in a JVM that is warm: with few
  rows by 0.02 to 0.25 s (pandas by 1.2 s, its workers start), with some hundred thousand by 0.1 to
  1.5 s (sliding 1.4, pandas 1.5, sessions 0.8, deduplication 0.7). Targets for catching up do not
  include it.
* **The latency follows from the duration**: where the mean duration is put right, 0.2% are left in
  the mean and 3% in the p99 (medians, table above). What is to be improved is the duration alone.
* **Eight partitions as fast as possible at 60%** is what misses most: the same rate is 0.4 to 1 s
  of work per second on a trigger (bursty 1.4). A batch gets the rows of the time that the one
  before it took: at 0.7 s of work per second, durations predicted a tenth too short become a
  quarter too short, a tenth too long two fifths too long. One repeat predicts the other no better.
  Where repeats agree and the error stays (`skewed`), the tasks that hold the hot key are predicted
  a tenth too short (table above).
* **The collector.** With a heap of 1 GB a state that grows keeps the collector's concurrent threads
  busy for 0.3 to 0.6 cores and its pauses for 0.1 to 0.9 (processor time per thread, read beside
  these runs): for every second that tasks run they wait half a second to nine tenths for a core.
  What that costs depends on how full the heap is, so that a fit at one size of the state says
  little of another: durations are predicted 19% too short (median), and most runs fell behind.
  With 768 MB a query ended for want of memory.

Found in the campaign before (8 s runs, no repeats, a hundred pieces of code), not tried again:

* **Pauses** do not make small tasks or the driver slower: -1% per second of idle time before the
  batch (standard errors 3 and 5%), and 0% over 30 recorded runs of another machine.
* **Age**: the driver's time falls as the age of the JVM to the power -0.10 (standard error 0.02),
  tasks to the power -0.04 to -0.07; over the 30 recorded runs of younger JVMs to the power -0.22.
* **Tasks hand over their slots** before they are counted as finished: 8 state tasks on 2 slots were
  predicted 5% too long, 16 of them 7%, and on another machine 4 to 32 tasks 4%. The fit takes
  that time from the spans on record.
* **Growing state**: a state task takes 0.2 to 1.6 us longer per batch for every row that its store
  holds (median 0.9: the default store copies its map for every batch). The fit takes that from
  states that grow under way, and predictions are given the size of the state. It was worked out on
  this workload, as the only one whose state grows.
"""

VARYING_WORDS = (
    "One run of 40 s at a trigger of 1 s and 2 partitions; its rate is 1.7 times the mean for "
    "4.4 s, then nothing for 2.9 s. All other settings are predicted from it alone."
)

OTHER_WORDS = (
    "Median errors. The sustainable rate is the one that predictions state: at most 0.9 s of work "
    "per second of input, and a variance that exists; it is held against the rate at which a "
    "backlog was worked off in batches of some 2 s, which is the most that was seen, so 80 to "
    "100% is as it should be."
)

EVERY_WORDS = (
    "The same runs, predicted by a fit on all undisturbed runs of their workload, the judged one "
    "among them: no choice of three settings can be expected to do better on runs that lie this "
    "far apart. What is left here is how runs differ, and what the form of the model leaves out."
)

RELIABILITY_WORDS = (
    "Of every judged run one random promise about its mean, its p95 and its p99 each: limits are "
    "drawn between 0.6 and 1.6 times what is predicted, without a look at what was measured, and "
    "the probability is the one that a plan states of this setting (theory.md P23). The standard "
    "error is that of chance where promises are independent; those of one run, and of one "
    "workload, are not."
)
