#!/bin/sh
# Runs a command, and says on stderr how many minutes of processor time it and its processes took:
#   sh scripts/cpu-minutes.sh NAME COMMAND...
name=$1
shift
spent=$(mktemp)
trap 'rm -f "$spent"' EXIT
"$@"
status=$?
# Not in a pipe, whose shell has no processes of its own. The second line is that of the processes.
times > "$spent"
awk -v name="$name" 'function s(text) { split(text, part, /[ms]/); return 60 * part[1] + part[2] }
    NR == 2 { printf "%s: %.2f CPU minutes\n", name, (s($1) + s($2)) / 60 }' "$spent" >&2
exit $status
