"""The tasks of a stage on cores."""
