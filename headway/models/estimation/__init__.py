"""Parameters from what was measured."""
