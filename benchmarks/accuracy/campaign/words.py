"""What the accuracy page says between its tables."""

from __future__ import annotations

PREFACE = """\
Real Structured Streaming queries on this page's machine: rows arrive on the wall clock, their
latency is measured from that arrival to the commit of their batch, window latency from the end of
the window to the commit of the last batch that emitted it. Every workload is fitted on three
settings (as fast as possible with 2 partitions at 30 % of what it can carry, 3 s and 2 partitions
at 60 %, 2 s and 8 partitions at 45 %: the smallest batches, the largest, and other partitions,
which is what `headway profile --advise` asks for), and judged on settings that were never fitted.
On two cores every setting was to be played twice for 12 s and more, all of them once before any of
them again, in random order, the second time in a JVM of its own; 99 of 133 second plays were run
before the time was over. A setting's figures are the means over its plays. Predictions are told
the age of the JVM.

Errors are predicted over measured, less one. They count for runs whose rows did not become older
(or batches were done in time all the same), beside which other processes used less than 0.3 cores,
and whose prediction does not itself warn of saturation; every other run is named below. The two
columns *within* are the shares within 10 % (mean) and 15 % (p99). The floor is the median
difference between two plays of one setting.

The model is the one of the campaign before, of which nothing was changed for these runs. What was
changed after their first plays is which settings are fitted: until then a run of 1 s at 30 % stood
in place of the one as fast as possible, by which means were 6.8 % off in the median and p99 7.8 %.
Six choices were tried on the first plays; the second plays were run after that. The groups on
other cores, executors and slots are of the earlier campaign: single plays of 8 s, fitted as then.
"""

FINDINGS = """\
Found in the event logs of these runs and in the counters of JVM and machine beside them, on
2026-11-21:

* **The processor's speed.** Between two plays of one setting the mean duration of a batch differs
  by 12 % on a trigger and 27 % as fast as possible (medians of 70 and 18 settings; the standard
  deviation of one run is 19 %). Processor time per row, of all processes, differs with it: by a
  standard deviation of 20 % between plays, correlation 0.65 with the duration over 88 settings.
  JSON rows cost 1.9 times as much processor time in one play of 1 s and 4 partitions as in the
  other, those of the growing state 1.5 times at 2 s and 16 partitions. Nothing else ran (0.02 to
  0.06 cores), and the hypervisor reported 0 to 0.13 cores stolen: this virtual machine is sometimes
  slow by itself. The counters were read every second beside these runs; a run records its own
  since. No profile can foretell such times. In durations it is what is left, and as fast as
  possible, where a batch brings the next one its rows, a latency moves several times as much.
* **Small batches cost more per row.** Fitted without batches as small as those of a query that runs
  as fast as possible, ten of thirteen workloads were told 12 to 32 % too short there at 30 % load:
  tasks of 3,300 to 6,600 rows took 8 to 27 ms longer than a line through 13,000 rows and more has
  it, part of it waiting (pandas 91 ms for 64 told, deduplication 54 for 43, state tasks of sessions
  54 for 31).
  With such a run among the three, all other settings gained too: of those that no choice was fitted
  on, all came within 10 % on the first plays. `--advise` now asks for it first.
* **Generated code of other queries.** Spark keeps a hundred pieces of generated code per session.
  In a trial of this campaign the heap held exactly 100 after the probes and six runs, so that a run
  could find its own thrown away, compile it anew and run it cold; the just-in-time compilers took
  128 s of processor time in the first four minutes. What is shown here keeps all of it
  (`spark.sql.codegen.cache.maxEntries`); compilers take 0.35 s per run (median; nine tenths below
  1.8 s). Sessions that run many queries have the same trouble.
* **Watermarks are constants in the code**: tumbling and sliding windows, sessions and
  deduplication compile one class in every batch, the join two; queries without a watermark none.
* **The first batch of a query** takes longer than its rows explain, in a JVM that is warm: with few
  rows by 0.02 to 0.25 s (pandas by 1.2 s, its workers start), with some hundred thousand by 0.1 to
  1.5 s (sliding 1.4, pandas 1.5, sessions 0.8, deduplication 0.7). Promises to catch up do not
  hold it.
* **The latency follows from the duration**: where the mean duration is put right, 0.2 % are left
  in the mean and 3 % in the p99 (medians, table above). What is to be improved is the duration
  alone.
* **Eight partitions as fast as possible at 60 %** is what misses most: the same rate is 0.4 to
  1 s of work per second on a trigger (bursty 1.4), where a few per cent of the cost of a row are a
  third of the latency, and the plays themselves lie 32 % apart. `rocksdb` is told 2.9 times too
  slow there and 2.4 times at 1 s and 4 partitions: its fitted run as fast as possible had batches
  of 0.25 s in one play and 0.14 s in the other, and the line through the three has too steep a
  slope. Bursty is fitted on runs of which one fell behind.

Found in the campaign before (8 s runs, single plays, a hundred pieces of code), not tried again:

* **Pauses** do not make small tasks or the driver slower: -1 % per second of idle time before the
  batch (standard errors 3 and 5 %), and 0 % over 30 recorded runs of another machine.
* **Age**: the driver's time falls as the age of the JVM to the power -0.10 (standard error 0.02),
  tasks to the power -0.04 to -0.07; over the 30 recorded runs of younger JVMs to the power -0.22.
* **Tasks hand over their slots** before they are counted as finished: 8 state tasks on 2 slots were
  told 5 % too long, 16 of them 7 %, and on another machine 4 to 32 tasks 4 %. The fit takes that
  time from the spans on record.
* **Growing state**: a state task takes 0.2 to 1.6 us longer per batch for every row that its store
  holds (median 0.9: the default store copies its map for every batch). The fit takes that from
  states that grow under way, and predictions are told the size of the state. It was worked out on
  this workload, as the only one whose state grows.
* The small heap (768 MB) ended a fitted run of the growing state for want of memory; what was run
  until then is shown, with two fitted runs.
"""

VARYING_WORDS = (
    "One run of 40 s at a trigger of 1 s and 2 partitions; its rate is 1.7 times the mean for "
    "4.4 s, then nothing for 2.9 s. All other settings are predicted from it alone."
)

OTHER_WORDS = (
    "Median errors. The sustainable rate is the one that predictions state: at most 0.9 s of work "
    "per second of input, and a variance that exists; it is held against the rate at which a "
    "backlog was worked off in batches of some 2 s, which is the most that was seen, so 80 to "
    "100 % is as it should be."
)

EVERY_WORDS = (
    "The same runs, predicted by a fit on all undisturbed runs of their workload, the judged one "
    "among them: no choice of three settings can be expected to do better on runs that lie this "
    "far apart. What is left here is how runs differ, and what the form of the model leaves out."
)
