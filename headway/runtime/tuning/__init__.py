"""A running query is changed: stopped between batches, started anew, given executors."""
