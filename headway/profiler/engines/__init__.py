"""Engines that read pieces of logs: processes of this machine, or Spark."""
