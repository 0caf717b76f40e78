"""Rows of a key in order on a stream, with state; blocking calls with results in order."""
