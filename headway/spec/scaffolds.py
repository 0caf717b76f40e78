"""What ``headway init`` writes: files that are valid as they are, with values to replace."""

from __future__ import annotations

#: The schema, as a file beside the spec: editors find it there without a network.
SCHEMA_FILE = "headway.schema.json"
_FIRST_LINE = f"# yaml-language-server: $schema={SCHEMA_FILE}\n"

_STREAMING = """\
# A streaming query and its latency target.
#   headway validate {file}     check it
#   headway plan {file}         fewest nodes, and the Spark configuration
#   headway emit {file} --format spark-submit
apiVersion: headway/v1
kind: StreamingJob
metadata:
  name: {name}
spec:
  # If there is an event log:  headway profile LOG -o {name}.profile.yaml
  # profile: {name}.profile.yaml
  # Until then, declare what you know; each figure may be a range.
  declared:
    source_partitions: 12
    task_per_row: {{low: 10us, mid: 20us, high: 40us}}
    driver: 150ms
    shuffle_task_per_row: 5us
    shuffle_partitions: 16
    cores_per_executor: 4
    executor_memory: 8g
  rate: 20k/s
  target: p99 <= 5s
  # A checkpoint that is kept fixes the shuffle partitions of a stateful query.
  checkpoint: new
"""
_BATCH = """\
# A batch job and its deadline.
apiVersion: headway/v1
kind: BatchJob
metadata:
  name: {name}
spec:
  declared:
    work: {{low: 30h, mid: 40h, high: 60h}}   # core time of all tasks
    tasks: 2000                               # of its widest stage
    stages: 4
    driver: 1min
    cores_per_executor: 4
    executor_memory: 8g
  deadline: 90min
  start_hour: 2
"""
_CLUSTER = """\
# Where jobs run; a job names this file under `cluster`.
apiVersion: headway/v1
kind: Cluster
metadata:
  name: {name}
spec:
  platform: kubernetes
  spark_version: '4.0.1'
  node: {{name: worker, cores: 16, memory: 64Gi, price_per_hour: 0.768}}
  max_nodes: 20
  cores_per_executor: 4
  executor_memory: 12g
  reserved_cores: 1
  reserved_memory: 4Gi
"""
_CATALOG = """\
# Nodes and what they cost.
apiVersion: headway/v1
kind: NodeCatalog
metadata:
  name: {name}
spec:
  date: 2026-11-21
  currency: USD
  source: our own price list
  nodes:
  - {{name: worker-16, cores: 16, memory: 64Gi, price_per_hour: 0.768, spot_price_per_hour: 0.31}}
  - {{name: worker-32, cores: 32, memory: 128Gi, price_per_hour: 1.536}}
"""
_CAPACITY = """\
# Many jobs, and what to buy for them.
#   headway capacity {file}
apiVersion: headway/v1
kind: CapacityPlan
metadata:
  name: {name}
spec:
  node_types: [m6i.*, c6i.*]
  jobs:
  - name: orders
    streaming:
      declared: {{source_partitions: 12, task_per_row: 20us, executor_memory: 8g}}
      rate:
        daily: [8k/s, 6k/s, 5k/s, 5k/s, 6k/s, 9k/s, 14k/s, 22k/s, 30k/s, 34k/s, 36k/s, 38k/s,
                40k/s, 38k/s, 36k/s, 35k/s, 36k/s, 40k/s, 44k/s, 42k/s, 34k/s, 24k/s, 16k/s, 11k/s]
      target: p99 <= 5s
  - name: nightly-report
    batch:
      declared: {{work: 40h, tasks: 2000, executor_memory: 8g}}
      deadline: 2h
      start_hour: 2
  pools:
  - {{name: main, sharing: shared, failures: 1, cores_per_executor: 4}}
  headroom: 20%
  schedule: hourly
  budget: {{per_day: 500}}
"""
_EXPLORATION = """\
# Runs of a query that narrow the answer to a question most.
#   headway explore {file}
apiVersion: headway/v1
kind: Exploration
metadata:
  name: {name}
spec:
  code: counts.py   # build(spark, setting) starts the query and returns it
  rate: 20k/s
  target: p99 <= 3s
  budget: 10m
"""
_SCHEDULE = """\
# Queries of one application, and whether taking turns pays off.
#   headway schedule {file}
apiVersion: headway/v1
kind: QuerySchedule
metadata:
  name: {name}
spec:
  cores: 4               # of all executors together
  cores_per_node: 4
  queries:
  - name: orders-per-minute
    declared: {{source_partitions: 4, task_per_row: 10us, shuffle_partitions: 4}}
    rate: 20k/s
    target: window p99 <= 20s
    trigger: 2s
    window_slide: 1min
    watermark_delay: 10s
  - name: clicks-to-kafka
    declared: {{source_partitions: 4, task_per_row: 10us, stateful: false}}
    rate: 5k/s
    target: p99 <= 4s
    trigger: 2s
"""
_MICRO_BATCHES = """\
# A pipeline of mini-batches: distributors, mappers and reducers.
#   headway predict {file}     latency of the setting below, phase by phase
#   headway plan {file}        fewest nodes, and their setting
#   headway simulate {file}    the same setting event by event
apiVersion: headway/v1
kind: MicroBatchPipeline
metadata:
  name: {name}
spec:
  rate: 1M/s
  target: mean <= 1s
  node: {{cores: 4, network: 112m/s, disk: 95m/s, write: 500us}}
  distributors: 10
  setting: {{nodes: 10, mappers: 2, reducers: 2, shuffle_period: 200ms, poll_period: 200ms}}
  job:
    map: 14us            # of a core, per input row
    outputs: 10          # rows of map output per input row
    reduce: 1.5us        # of a core, per row of map output
    input_row: 140b
    shuffle_row: 15b
    packing: 800us       # mapper, per shuffle batch
    per_poll: 3ms        # reducer
    per_batch: 20us      # reducer
    map_noise: 20%
    reduce_noise: 20%
    # windows: {{slide: 30s, keys: 2800000, finalize: 10us}}
    # state: {{memory: 200m, key: 100b, keys: 40000000, zipf: 1.0, on_disk: 30us}}
"""

_ORDERED = """\
# Operators that workers share, and whose output keeps the order of the input.
#   headway predict {file}     highest rate, and what limits it
#   headway simulate {file}    schedulers side by side
apiVersion: headway/v1
kind: OrderedPipeline
metadata:
  name: {name}
spec:
  workers: 16
  slice: 1ms
  rate: 900k/s             # or: saturated
  target: p99 <= 50ms
  reorder: {{scheme: non-blocking, buffer: 64, store: 0.1us, send: 0.5us, lock: 0.1us}}
  operators:
  - {{name: parse, type: stateless, cost: 10us}}
  - name: sessions
    type: partitioned
    cost: 8us
    selectivity: 0.05
    partitions: 100
    queue: hybrid
    keys: {{number: 100000, zipf: 0.5}}
  - {{name: top, type: stateful, cost: 4us}}
  compare: [CT, LP, ET, QST]
"""
_TUNING = """\
# A streaming query that is kept within its target while it runs.
#   headway tune {file}          recommends changes
#   headway tune {file} --act    makes them, within the bounds
apiVersion: headway/v1
kind: Tuning
metadata:
  name: {name}
spec:
  code: counts.py                 # build(spark, setting) starts the query and returns it
  profile: {name}.profile.yaml
  target: p99 <= 3s
  state: {name}.tuner.json
  # executors: {{min: 2, max: 12}}
  # triggers: [500ms, 1s, 2s]
  # quiet: ["22:00-06:00"]
"""
_WINDOWS = """\
# Queries that count windows over one stream, and whether sharing panes pays off.
#   headway windows {name}.profile.yaml --queries {file}
apiVersion: headway/v1
kind: SharedWindows
metadata:
  name: {name}
spec:
  # rate: 50k/s        # as profiled by default
  # trigger: 5s
  queries:
  - name: dashboard
    windows: [1h every 5m, 10m]
  - name: totals
    windows: 1d
"""

#: The text of a scaffold for each kind, with places for the name and the file.
_SCAFFOLDS = {
    "StreamingJob": _STREAMING,
    "BatchJob": _BATCH,
    "Cluster": _CLUSTER,
    "NodeCatalog": _CATALOG,
    "CapacityPlan": _CAPACITY,
    "QuerySchedule": _SCHEDULE,
    "Exploration": _EXPLORATION,
    "Tuning": _TUNING,
    "MicroBatchPipeline": _MICRO_BATCHES,
    "OrderedPipeline": _ORDERED,
    "SharedWindows": _WINDOWS,
}


def scaffold(kind: str, *, name: str, file: str) -> str:
    """The text of a new file.

    Examples
    --------
    >>> scaffold("StreamingJob", name="orders", file="orders.yaml").splitlines()[5]
    'apiVersion: headway/v1'
    """
    return _FIRST_LINE + _SCAFFOLDS[kind].format(name=name, file=file)
