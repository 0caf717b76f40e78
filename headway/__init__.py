"""Headway: resource planning for Apache Spark from a latency target."""
