"""The gate of a build: locked plans compared with current plans."""
