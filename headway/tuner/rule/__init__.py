"""Keeping a running query within its target: rates of sizes, when to change, other policies."""
