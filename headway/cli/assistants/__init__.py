"""Commands as tools of assistants: their arguments, their calls, and their folder."""
