#!/bin/sh
# Runs the tests that need no Spark on the lowest version of each requirement, on Python 3.11.
set -eu
python=${1:-python3.11}
environment=.venv-lowest
"$python" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' || {
    echo "the lowest versions are tested on Python 3.11: sh scripts/test-lowest.sh python3.11" >&2
    exit 1
}
"$python" scripts/lowest_versions.py > "$environment.txt"
if ! cmp -s "$environment.txt" "$environment/constraints.txt"; then
    rm -rf "$environment"
    "$python" -m venv "$environment"
    "$environment/bin/python" -m pip install --quiet --constraint "$environment.txt" --editable '.[test,mcp]'
    mv "$environment.txt" "$environment/constraints.txt"
fi
rm -f "$environment.txt"
# Pages are made with the newest solver; an older one finds another fleet of the same cost.
"$environment/bin/python" -m pytest -n 2 --dist loadgroup --no-loadscope-reorder \
    -m "not spark and not jvm and not statistical and not robustness" \
    --deselect tests/test_docs.py::test_the_pages_are_fresh
