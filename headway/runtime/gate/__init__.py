"""Queries of one session take turns, by a gate in front of their triggers."""
