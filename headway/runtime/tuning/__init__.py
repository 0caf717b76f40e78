"""Changing a running query: stopping between batches, restarting, changing executors."""
