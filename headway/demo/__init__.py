"""The demonstration on a real Spark: from a running query to a plan that meets its target."""
