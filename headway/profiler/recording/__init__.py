"""The recorder that a running session carries."""
