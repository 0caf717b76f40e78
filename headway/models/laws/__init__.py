"""Distributions, their extremes and mixtures."""
