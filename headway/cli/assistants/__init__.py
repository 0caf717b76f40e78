"""Commands as tools of assistants: their arguments, their calls, and the folder that they may read."""
