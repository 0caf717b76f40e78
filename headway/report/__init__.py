"""Predictions and plans for people and machines: JSON, terminal text, one HTML page."""
