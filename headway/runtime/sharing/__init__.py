"""Overlapping windows computed from shared panes on a running Spark: one query, or a log."""
