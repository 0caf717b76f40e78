"""Event simulations that commands run; those that only verify formulas are in `tests/oracles`."""
