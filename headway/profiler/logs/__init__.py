"""Finding event logs, and turning them into plain lines."""
