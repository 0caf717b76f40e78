"""Overlapping windows from shared panes on a running Spark, by one query or a log."""
