"""Event simulations that simulate the rules which the formulas summarise, and judge them."""
