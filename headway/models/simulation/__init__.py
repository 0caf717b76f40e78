"""Event simulations that commands play; those that only judge formulas are in `tests/oracles`."""
