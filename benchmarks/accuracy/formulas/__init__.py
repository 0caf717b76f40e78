"""Formulas against the event simulations that judge them, family by family."""
