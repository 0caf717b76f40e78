#!/bin/sh
# One line and a failure where there is no JDK 17 or newer: Spark needs it to run, and the demo's
# clock source to be compiled.
for home in "$JAVA_HOME" "$(dirname "$(dirname "$(command -v javac || echo /none/bin/javac)")")"; do
  [ -n "$home" ] && [ -x "$home/bin/javac" ] || continue
  major=$("$home/bin/javac" -version 2>&1 | sed -E 's/^javac ([0-9]+).*/\1/')
  [ "$major" -ge 17 ] 2>/dev/null && exit 0
done
echo "headway needs a JDK 17 or newer: 'apt-get install openjdk-17-jdk-headless', 'brew install openjdk@17', or set JAVA_HOME to one" >&2
exit 1
