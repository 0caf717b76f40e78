"""Micro-batches: triggers, tuples, windows."""
