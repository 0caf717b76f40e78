"""Collected data of a batch or DStreams application -> its profile."""
