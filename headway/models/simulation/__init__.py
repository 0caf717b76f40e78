"""Event simulations that commands run; those that only judge formulas are in `tests/oracles`."""
