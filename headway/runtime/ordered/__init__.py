"""Rows of a key in order on a stream, with state; calls that wait, their results in order."""
