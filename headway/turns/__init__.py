"""Queries of one application that take turns: which policy, and what it predicts."""
