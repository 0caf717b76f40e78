"""The embedded Spark."""
