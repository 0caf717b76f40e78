"""Real streaming runs over workloads and settings: played, measured, predicted, published."""
