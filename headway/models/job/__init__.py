"""A profiled job at a setting."""
