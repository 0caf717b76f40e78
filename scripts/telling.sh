#!/bin/sh
# Runs a command, and says on stderr at its start and every 15 seconds what goes on:
#   sh scripts/telling.sh TEXT COMMAND...
text=$1
shift
echo "$text" >&2
(
    passed=0
    # The output is closed for sleep, which outlives this loop for some seconds.
    while sleep 15 > /dev/null 2>&1 < /dev/null; do
        passed=$((passed + 15))
        echo "$text, ${passed} s" >&2
    done
) &
teller=$!
trap 'kill "$teller" 2> /dev/null' EXIT
"$@"
