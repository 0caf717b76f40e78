"""Queries of one session take turns: the gate in front of their triggers."""
