"""Event simulations that play the rules which the formulas summarise, and judge them."""
