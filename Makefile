# Everything sets itself up: a virtual environment in .venv, made on first use.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# The newest Spark that Delta Lake supports has an environment of its own.
DELTA_READY := .venv-delta/.ready
# The SDK of assistants brings many packages, which no other test needs.
MCP_READY := .venv-mcp/.ready
GROUND_TRUTH ?= ../shared/data/groundtruth
PUBLISHED ?= ../shared/data
CAMPAIGN ?= ../headway-campaign
ORDINARY ?= ../headway-ordinary
SWITCHES ?= ../headway-switches
# The git tree of headway/tuner/rule; traces drawn afterwards have it as random seed. That of the rule
# before, whose drawn traces are seen, when the folder was headway/planner/live.
FROZEN_RULE ?= fef04aea64fda72b22d11964d61a2a432982af16
SEEN_RULE ?= 022be3c55f0d0dfab7303447e7f28c701af523f6

# What .ci/run sets to know how much processor time each part takes.
CPU ?=
MEASURED = $(if $(CPU),$(CPU) $@)

# Tests and pages start hundreds of processes: what they load is compiled by the first of them.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test lint types imports tests quick test-costs test-statistical test-robustness fuzz test-versions test-lowest test-mcp browser \
        accuracy runs-accuracy accuracy-count accuracy-campaign accuracy-kept accuracy-judged live-backlogs left-states accuracy-terms plan-accuracy recorded-accuracy model-accuracy window-accuracy \
        ordinary-jobs ordinary-count ordinary-trial ordinary-judged ordinary-page ordinary-limits run-pairs checkpoint-writes checkpoint-requests driver-runs driver-page switch-runs switch-judged switch-page scalla scalla-costs \
        scheduling ordered speed-ordered-chains scheduling-real scheduling-shedding scheduling-real-page \
        kafka-accuracy planned-real-time cluster-accuracy scaling-accuracy speed speed-profiling speed-models \
        tuning-simulated tuning-lost tuning-real tuning-real-page exactness exactness-page loop-cost \
        speed-planning speed-scheduling speed-scheduling-spark speed-capacity window-equality window-sharing window-runs window-kafka \
        shedding-lives ordered-equality ordered-runs ordered-state speed-ordered skewed-plans skewed-plans-page backlogs backlogs-page restarts restarts-page goldens \
        docs site figures wheel jars constraints audit java clean

demo: $(READY) java  ## the main job on an embedded Spark, two minutes and a minute of installation
	@$(BIN)/headway demo; status=$$?; \
	  echo 'To type headway instead of $(BIN)/headway:  export PATH="$(CURDIR)/$(BIN):$$PATH"'; \
	  exit $$status

test: lint  ## everything CI runs; types and imports are looked at beside the tests
	@$(MAKE) --no-print-directory -j2 tests types imports

lint: $(READY)
	$(MEASURED) $(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(MEASURED) $(BIN)/mypy

imports: $(READY)
	$(MEASURED) $(BIN)/lint-imports pyproject.toml imports-of-pyspark.toml

# Of three processes on two cores one mostly waits for Spark, whose session tests share by the groups
# of tests/conftest.py. Modules are compiled once, not by each process.
tests: $(READY) java
	$(BIN)/python -m compileall -q headway benchmarks scripts
	$(MEASURED) $(BIN)/python -m pytest -n 3 --dist loadgroup --no-loadscope-reorder -m "not statistical and not robustness"

# What a change elsewhere breaks most often: names on generated pages, printed examples, counts of the house.
WHOLE := architecture arguments assumptions docs doors findings house_rules language readme results theory
quick: lint types imports  ## a minute before each commit: style, types, generated pages, rules of the house, goldens
	$(BIN)/python -m pytest -n 2 --dist loadgroup --no-loadscope-reorder -m "not spark and not jvm and not statistical and not robustness" $(WHOLE:%=tests/test_%.py) tests/goldens

test-costs: $(READY) java  ## processor time and peak memory of each test of `make test`
	rm -f build/test-costs.jsonl
	-$(BIN)/python -m pytest -p tests.costs -n 3 --dist loadgroup --no-loadscope-reorder -m "not statistical and not robustness"
	$(BIN)/python -m tests.costs

test-statistical: $(READY) java  ## seeded simulations and all random cases, minutes
	HEADWAY_ALL_EXAMPLES=1 $(BIN)/python -m pytest -m "(statistical or hypothesis) and not robustness"

test-robustness: $(READY) java  ## thousands of damaged logs, minutes
	$(BIN)/python -m pytest -m robustness

FUZZED ?= 200000
fuzz: $(READY)  ## damaged files, options and calls through the whole command line: FUZZED=200000 SEED=1 PROCESSES=2
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.fuzz.run --inputs $(FUZZED) --seed $(or $(SEED),1) --processes $(or $(PROCESSES),2)

test-versions: java  ## the profiler's tests on each supported PySpark, in environments of their own
	sh scripts/test-versions.sh $(PYTHON)

test-mcp: $(MCP_READY)  ## headway mcp, asked by the client of the protocol's SDK
	.venv-mcp/bin/python -m pytest tests/cli/test_mcp.py

# Pages in a browser: Debian's Chromium, and axe-core from npm.
browser: site  ## pages and the documentation site in Chromium, looked at by axe-core (needs chromium and npm)
	npm install --silent --no-save --prefix build/browser axe-core@4
	$(BIN)/python -m pytest tests/report/test_pages.py tests/report/test_accessibility.py

test-lowest:  ## the tests without Spark on the lowest version of each requirement
	sh scripts/test-lowest.sh python3.11

accuracy: $(READY)  ## the accuracy page from the committed results -> docs/accuracy.md
	$(BIN)/python -m pip install --quiet --editable '.[dev,benchmarks]'
	$(BIN)/python benchmarks/run.py campaign_page --output docs/accuracy.md

runs-accuracy: $(READY)  ## what one log, four runs, eight runs are worth, from the committed results -> docs/how-many-runs.md
	$(BIN)/python benchmarks/run.py runs_page --output docs/how-many-runs.md

accuracy-count: $(READY)  ## what each block of the campaign still takes, in minutes
	$(BIN)/python benchmarks/run.py run_campaign $(CAMPAIGN) --count

accuracy-campaign: $(READY) java  ## real runs anew, block by block, on a quiet machine: four hours, or QUIET='--minutes 110' of them
	$(BIN)/python benchmarks/run.py run_campaign $(CAMPAIGN) $(QUIET)

accuracy-kept: $(READY)  ## the whole blocks of a campaign -> benchmarks/accuracy/results; it goes on without its folder
	$(BIN)/python benchmarks/run.py keep_campaign $(CAMPAIGN)

accuracy-judged: $(READY)  ## predictions about the runs of the campaign that there are -> benchmarks/accuracy/results
	$(BIN)/python benchmarks/run.py judge_campaign $(CAMPAIGN) --output benchmarks/accuracy/results/campaign.jsonl.gz

live-backlogs: $(READY) java  ## backlogs with event times of live rows, and the runs that predict them: 23 minutes, WORKLOAD=join for 6
	$(BIN)/python benchmarks/run.py live_backlogs build/live-backlogs $(if $(WORKLOAD),--workload $(WORKLOAD)) $(QUIET)

left-states: $(READY) java  ## two queries beside the state that another left in the heap, ten minutes on a quiet machine
	$(BIN)/python benchmarks/run.py left_states --output benchmarks/accuracy/results/left-states.jsonl

accuracy-terms: $(READY)  ## what each term of the fit is worth, from the kept runs of a campaign
	$(BIN)/python benchmarks/run.py terms

plan-accuracy: $(READY) java  ## plans from new and existing checkpoints, each run, ten minutes -> docs/plans-run.md
	$(BIN)/python benchmarks/run.py checkpoint_plans $(CAMPAIGN) --results benchmarks/accuracy/results/checkpoint-plans.jsonl --output docs/plans-run.md

ordinary-jobs: $(READY) $(DELTA_READY) java  ## Nexmark and shop jobs, an hour at most on a quiet machine: BLOCK=1 to 6; resumes
	$(BIN)/python -m pip install --quiet --editable '.[dev,benchmarks]'
	$(BIN)/python benchmarks/run.py ordinary_jobs $(ORDINARY) $(if $(BLOCK),--block $(BLOCK)) $(QUIET)

ordinary-count: $(READY)  ## what each block of these still takes, in minutes
	$(BIN)/python benchmarks/run.py ordinary_jobs $(ORDINARY) --count

ordinary-trial: $(READY) $(DELTA_READY) java  ## a few batches of each job, and what a profile says of it: JOB=nexmark-q5 for one
	$(BIN)/python -m pip install --quiet --editable '.[dev,benchmarks]'
	$(BIN)/python benchmarks/run.py ordinary_jobs build/ordinary-trial --trial $(if $(JOB),--job $(JOB))

ordinary-judged: $(READY)  ## predictions about the runs that there are -> benchmarks/accuracy/results
	$(BIN)/python benchmarks/run.py judge_ordinary $(ORDINARY)

ordinary-limits: $(READY) java  ## runs at the rates that a verdict and a probe disagree about
	$(BIN)/python benchmarks/run.py ordinary_limits $(ORDINARY) $(QUIET)

ordinary-page: $(READY)  ## the page about them, from the committed results -> docs/ordinary-jobs.md
	$(BIN)/python benchmarks/run.py ordinary_page --output docs/ordinary-jobs.md

run-pairs: $(READY)  ## each recorded run predicted from each other one -> docs/run-pairs.md
	$(BIN)/python benchmarks/run.py run_pairs --output docs/run-pairs.md

checkpoint-requests: $(READY) java  ## requests of seven queries at an S3-compatible server, ten minutes; needs moto[server] and Maven Central
	$(BIN)/python benchmarks/run.py checkpoint_requests

checkpoint-writes: $(READY) java  ## files that real queries write per batch, beside the prediction, and the requests counted before -> docs/checkpoint-writes.md
	$(BIN)/python benchmarks/run.py checkpoint_writes --output docs/checkpoint-writes.md

switch-runs: $(READY) java  ## pairs of real runs with a switch of Spark off and on, 27 minutes on a quiet machine; resumes where it stopped
	$(BIN)/python benchmarks/run.py switch_runs $(SWITCHES) $(QUIET)

switch-judged: $(READY)  ## profiles of the runs before, from their event logs -> benchmarks/accuracy/results
	$(BIN)/python benchmarks/run.py judge_switches $(SWITCHES)

switch-page: $(READY)  ## gains of switches predicted from the runs before, beside the measured ones -> docs/switches.md
	$(BIN)/python benchmarks/run.py switch_page --output docs/switches.md

recorded-accuracy: $(READY) java  ## predicted against runs that others recorded -> docs/recorded-accuracy.md
	$(BIN)/python benchmarks/run.py ground_truth $(GROUND_TRUTH) --output docs/recorded-accuracy.md

model-accuracy: $(READY)  ## every formula against simulation -> docs/model-accuracy.md
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/run.py model_accuracy --output docs/model-accuracy.md

window-accuracy: $(READY) java  ## window latency predicted and measured on real runs -> docs/window-accuracy.md
	$(BIN)/python benchmarks/run.py window_runs --output docs/window-accuracy.md

kafka-accuracy: $(READY) java  ## Kafka to Spark to Kafka, predicted and measured -> docs/kafka-accuracy.md
	$(BIN)/python benchmarks/run.py kafka_lane --results benchmarks/accuracy/results/kafka.jsonl --output docs/kafka-accuracy.md

planned-real-time: $(READY) java  ## Real-Time Mode planned from micro-batches and run on a broker, five minutes on a quiet machine
	$(BIN)/python benchmarks/run.py planned_real_time --results benchmarks/accuracy/results/planned-real-time.jsonl

cluster-accuracy: $(READY)  ## published runs on clusters, predicted from smaller ones -> docs/cluster-accuracy.md
	$(BIN)/python benchmarks/run.py clusters $(PUBLISHED) --output docs/cluster-accuracy.md

scaling-accuracy: $(READY)  ## how errors grow beyond a profile, from the committed results -> docs/scaling-accuracy.md
	$(BIN)/python benchmarks/run.py scaling --output docs/scaling-accuracy.md

scalla: $(READY)  ## the paper's study, formula against simulation -> docs/scalla.md
	$(BIN)/python benchmarks/run.py scalla_study --output docs/scalla.md

scalla-costs: $(READY)  ## costs that bring out half of the paper's cells; then make scalla
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/run.py scalla_fit

scheduling: $(READY)  ## figures of the scheduling papers by simulation -> docs/scheduling.md
	$(BIN)/python benchmarks/run.py reproductions --output docs/scheduling.md

ordered: $(READY)  ## figures of the paper on ordered streams by formula and simulation -> docs/ordered.md
	$(BIN)/python -m pip install --quiet --editable '.[dev,benchmarks]'
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/run.py ordered_pipelines --output docs/ordered.md

speed-ordered-chains: $(READY)  ## a million tuples through five operators, and the other simulators -> docs/ordered-chains-speed.md
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/run.py ordered_chains --output docs/ordered-chains-speed.md

scheduling-real: $(READY) java  ## real queries under each policy: what is missing, up to 2 h 20 min on a quiet machine; three times for all
	$(BIN)/python benchmarks/run.py real_gate --budget 140m

scheduling-shedding: $(READY) java  ## rows given up at 1.2 and 1.6 times capacity, 40 minutes on a quiet machine; resumes where it stopped
	$(BIN)/python benchmarks/run.py real_shedding

scheduling-real-page: $(READY)  ## the page about it, from the committed results -> docs/scheduling-real.md
	$(BIN)/python -m pip install --quiet --editable '.[dev,benchmarks]'
	$(BIN)/python benchmarks/run.py real_gate_page --output docs/scheduling-real.md

speed-profiling: $(READY) java  ## log to profile and to plan, beside plain decoding, a reader on the JVM and Spark -> docs/profiling-speed.md
	$(BIN)/python benchmarks/run.py profiling $(wildcard $(GROUND_TRUTH)/sha_agg_local2/eventlog_v2_*) --output docs/profiling-speed.md

speed: $(READY)  ## whole-process times -> docs/speed.md
	$(BIN)/python benchmarks/run.py commands --output docs/speed.md

speed-scheduling: $(READY)  ## decisions of a gate, simulators of turns, half a minute -> docs/scheduling-speed.md
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/run.py scheduling --output docs/scheduling-speed.md

speed-scheduling-spark: $(READY) java  ## costs of real gates for that page, a quarter of an hour on a quiet machine
	$(BIN)/python benchmarks/run.py scheduling --measure

speed-planning: $(READY)  ## plans of few and of a thousand nodes, in process -> docs/planning-speed.md
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/run.py planning --output docs/planning-speed.md

speed-capacity: $(READY)  ## a fleet of 1,000 jobs x 50 node types x 24 hours -> docs/capacity-speed.md
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/run.py capacity --output docs/capacity-speed.md

tuning-simulated: $(READY)  ## Headway and other rules under simulated load, half an hour, or QUIET='--minutes 10' of it; resumes -> docs/tuning-simulated.md
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 nice -n 10 $(BIN)/python benchmarks/run.py tuning_simulated --frozen $(FROZEN_RULE) --seen $(SEEN_RULE) $(QUIET) --output docs/tuning-simulated.md

tuning-lost: $(READY)  ## why windows are late under the frozen rule, ten minutes; resumes; `make tuning-simulated` shows it
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 nice -n 10 $(BIN)/python benchmarks/run.py lost_windows --frozen $(FROZEN_RULE) --seen $(SEEN_RULE)

tuning-real: $(READY) java  ## steps of load under the tuner, two parts of 95 minutes on a quiet machine; resumes where it stopped
	$(BIN)/python benchmarks/run.py tuning_real --measure $(QUIET)

tuning-real-page: $(READY)  ## the page about it, from the committed results -> docs/tuning-real.md
	$(BIN)/python -m pip install --quiet --editable '.[dev,benchmarks]'
	$(BIN)/python benchmarks/run.py tuning_real --output docs/tuning-real.md

exactness: $(READY) java  ## numbered rows through a thousand changes and kills, an hour, or QUIET='--minutes 10' of it, with Kafka from Maven Central; resumes
	$(BIN)/python benchmarks/run.py exactness $(QUIET)

exactness-page: $(READY)  ## the page about it, from the committed results -> docs/exactness.md
	$(BIN)/python benchmarks/run.py exactness_page --output docs/exactness.md

loop-cost: $(READY) java  ## what a decision and the loop of the tuner cost, a quiet machine -> docs/loop-cost.md
	$(BIN)/python benchmarks/run.py loop_cost --output docs/loop-cost.md

window-sharing: $(READY)  ## the paper's figures by the models, and the committed real runs -> docs/window-sharing.md
	$(BIN)/python -m pip install --quiet --editable '.[dev,benchmarks]'
	$(BIN)/python benchmarks/run.py window_sharing --output docs/window-sharing.md

window-runs: $(READY) java  ## windows shared and not, real runs anew, three hours on a quiet machine
	$(BIN)/python benchmarks/run.py window_sharing --measure

window-kafka: $(READY) java  ## windows of a Kafka topic, directly and shared, latency and every row, ten minutes
	$(BIN)/python benchmarks/run.py kafka_windows

window-equality: $(READY) java  ## shared windows against the direct query: 10,000 random cases, 300 real runs, kills
	HEADWAY_WINDOW_CASES=10000 HEADWAY_WINDOW_RUNS=100 HEADWAY_WINDOW_TYPED_RUNS=200 HEADWAY_WINDOW_KILLS=30 \
	  HEADWAY_WINDOW_STREAM_KILLS=20 \
	  $(BIN)/python -m pytest tests/runtime/sharing

shedding-lives: $(READY) java  ## numbered rows through 50 lives of a query that sheds: new checkpoints at one path, restarts, killed drivers
	HEADWAY_SHEDDING_LIVES=50 $(BIN)/python -m pytest -s tests/runtime/test_shedding_lives.py

ordered-equality: $(READY) java  ## steps in order against one worker: 10,000 random cases, 60 real streams, 20 killed drivers
	HEADWAY_ORDERED_CASES=10000 HEADWAY_ORDERED_RUNS=60 HEADWAY_ORDERED_KILLS=20 $(BIN)/python -m pytest tests/runtime/ordered

ordered-runs: $(READY) java  ## steps in order, by buckets, by key, with placed keys; hours on a quiet machine, resumes where it stopped
	$(BIN)/python benchmarks/run.py ordered_speed --measure

ordered-state: $(READY) java  ## bytes of state per batch at 100,000 keys, and its speed, a quarter of an hour on a quiet machine; resumes where it stopped
	$(BIN)/python benchmarks/run.py ordered_state --minutes 15

speed-ordered: $(READY)  ## the page about it, from the committed results -> docs/ordered-speed.md
	$(BIN)/python benchmarks/run.py ordered_speed --output docs/ordered-speed.md

skewed-plans: $(READY) java  ## plans of four jobs with heavy keys, run for real, 20 minutes on a quiet machine; resumes where it stopped
	$(BIN)/python benchmarks/run.py skewed_plans --measure

skewed-plans-page: $(READY)  ## the page about it, from the committed results -> docs/skewed-plans.md
	$(BIN)/python -m pip install --quiet --editable '.[dev,benchmarks]'
	$(BIN)/python benchmarks/run.py skewed_plans --output docs/skewed-plans.md

driver-runs: $(READY) java  ## small queries of one application, up to 40, 15 minutes on a quiet machine; resumes where it stopped
	$(BIN)/python benchmarks/run.py driver_runs $(or $(DRIVER),build/driver-runs) $(QUIET)
	$(BIN)/python benchmarks/run.py driver_page --folder $(or $(DRIVER),build/driver-runs)

driver-page: $(READY)  ## how many queries a driver carries, from the committed results -> docs/driver.md
	$(BIN)/python benchmarks/run.py driver_page --output docs/driver.md

backlogs: $(READY) java  ## run times of queries that read a backlog and end, 20 minutes on a quiet machine; resumes where it stopped
	$(BIN)/python benchmarks/run.py backlogs --measure

backlogs-page: $(READY)  ## the page about it, from the committed results -> docs/backlogs.md
	$(BIN)/python benchmarks/run.py backlogs --output docs/backlogs.md

restarts: $(READY) java  ## restarts at three sizes of state, and RocksDB within a bound, 20 minutes on a quiet machine; resumes where it stopped
	$(BIN)/python benchmarks/run.py restart_runs build/restarts --minutes 25
	$(BIN)/python benchmarks/run.py rocksdb_memory build/restarts --minutes 10
	$(BIN)/python benchmarks/run.py judge_restarts build/restarts

restarts-page: $(READY)  ## the page about it, from the committed results -> docs/restarts.md
	$(BIN)/python benchmarks/run.py restart_page --output docs/restarts.md

goldens: $(READY)  ## what commands and calls print, on record -> tests/goldens/record; look at the difference
	$(BIN)/python -m tests.goldens.write

docs: $(READY)  ## pages made of help texts, schemas and commands: docs/cli.md and others; the notebooks
	$(BIN)/python scripts/refresh_docs.py
	$(BIN)/python scripts/refresh_notebooks.py

site: $(READY)  ## the documentation site, no broken link -> build/site/index.html
	$(BIN)/python -m pip install --quiet --editable '.[dev,site]'
	$(BIN)/python -m mkdocs build --strict --quiet

figures: $(READY)  ## figures of the documentation and the README's picture, by the models -> docs/img
	$(BIN)/python scripts/figures.py --page

jars: $(READY)  ## the Java sources of the package, compiled -> headway/runtime/*/*.jar
	$(BIN)/python scripts/build_jars.py

wheel: $(READY)  ## what is published -> dist/
	$(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .
	@ls dist/headway-*.whl

speed-models: $(READY)  ## settings and simulated jobs per second, beside SimPy and Ciw -> docs/models-speed.md
	$(BIN)/python -m pip install --quiet --editable '.[dev,benchmarks]'
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/run.py models --output docs/models-speed.md

java:
	@sh scripts/require-java.sh

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "headway needs Python 3.11 or newer; name one with: make PYTHON=python3.12 ..." >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV)
	@sh scripts/telling.sh "installing Headway and what it needs into $(VENV) (1.6 GB)" \
	  $(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@

$(DELTA_READY): pyproject.toml
	$(PYTHON) -m venv .venv-delta
	.venv-delta/bin/python -m pip install --quiet 'pyspark==4.2.0' --editable '.[logs]'
	@touch $@

$(MCP_READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-mcp
	.venv-mcp/bin/python -m pip install --quiet --constraint constraints.txt --editable '.[test,mcp]'
	@touch $@

constraints:  ## the newest versions of what tests need -> constraints.txt; then: make clean test
	rm -rf .venv-newest
	$(PYTHON) -m venv .venv-newest
	.venv-newest/bin/python -m pip install --quiet --editable '.[dev]'
	sed '/^[^#]/d' constraints.txt > constraints.new
	.venv-newest/bin/python -m pip freeze --exclude-editable | sed 's/$$/; python_version < "3.15"/' >> constraints.new
	mv constraints.new constraints.txt

# The service that knows of vulnerabilities: pypi, osv or esms. A package that it does not know fails
# the target, for it was not audited.
AUDIT_SERVICE ?= pypi
audit:  ## the pinned versions, against known vulnerabilities (network)
	@test -e .venv-audit/.ready || { $(PYTHON) -m venv .venv-audit && \
	  .venv-audit/bin/python -m pip install --quiet pip-audit && touch .venv-audit/.ready; }
	.venv-audit/bin/pip-audit --strict --vulnerability-service $(AUDIT_SERVICE) --no-deps --disable-pip \
	  --requirement constraints.txt

clean:
	rm -rf $(VENV) .venv-lowest .venv-newest .venv-audit .venv-delta .venv-mcp .venv-pyspark-* build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
