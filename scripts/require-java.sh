#!/bin/sh
# One line and a failure where there is no Java 17 or newer, which Spark needs to run.
for home in "$JAVA_HOME" "$(dirname "$(dirname "$(command -v java || echo /none/bin/java)")")"; do
  [ -n "$home" ] && [ -x "$home/bin/java" ] || continue
  major=$("$home/bin/java" -version 2>&1 | sed -nE 's/.*version "(1\.)?([0-9]+).*/\2/p' | head -1)
  [ "$major" -ge 17 ] 2>/dev/null && exit 0
done
echo "headway needs Java 17 or newer: 'apt-get install openjdk-17-jre-headless', 'brew install openjdk@17', or set JAVA_HOME to one" >&2
exit 1
