"""The version, declared once."""

__version__ = "0.1.0"
