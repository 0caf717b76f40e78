"""A running query held to its target: what sizes sustain, when to change, what others would do."""
