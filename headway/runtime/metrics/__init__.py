"""Metrics of a running Spark: as a source of Spark's own, at an address, in a file."""
