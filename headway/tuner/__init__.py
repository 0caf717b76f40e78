"""Keeps a running query within its target: what it sees, what it changes, what it remembers."""
