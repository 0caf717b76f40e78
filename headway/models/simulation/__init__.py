"""Event simulations that play the rules which the formulas summarise; the formulas' oracles."""
