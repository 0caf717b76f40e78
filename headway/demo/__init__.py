"""The demonstration: the whole line on a real Spark, from a running query to a kept promise."""
