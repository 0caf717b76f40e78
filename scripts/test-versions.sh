#!/bin/sh
# Runs the tests of the profiler and of what touches a running Spark (among them turns, within
# batches and passed on by the standing order) on each supported PySpark, each in an environment of
# its own. Those of version 4 and later also call everything on a server of Spark Connect.
set -eu
python=${1:-python3}
for version in 3.5.9 4.0.1 4.3.0; do
    environment=.venv-pyspark-$version
    # Without these, tests of rows in order on a stream are skipped before PySpark 4.3.
    case $version in 4.3.*) older= ;; *) older='pandas<3 pyarrow<19' ;; esac
    if [ ! -e "$environment/.ready" ]; then
        "$python" -m venv "$environment"
        "$environment/bin/python" -m pip install --quiet "pyspark[connect]==$version" --editable '.[dev]' $older
        touch "$environment/.ready"
    fi
    echo "PySpark $version"
    "$environment/bin/python" -m pytest -m "not robustness" tests/profiler tests/runtime tests/tuning
done
