"""Waiting in front of one server."""
