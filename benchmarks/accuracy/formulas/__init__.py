"""Formulas compared with event simulations, family by family."""
