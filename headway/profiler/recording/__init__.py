"""The recorder inside a running session."""
