"""The planner: the fewest nodes that keep a promise."""
