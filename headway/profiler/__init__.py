"""The profiler: Spark statistics in, job profile out."""
