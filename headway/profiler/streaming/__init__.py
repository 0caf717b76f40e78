"""Collected data of a streaming query -> its profile."""
