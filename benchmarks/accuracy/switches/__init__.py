"""Pairs of real runs that differ in one switch of Spark."""
