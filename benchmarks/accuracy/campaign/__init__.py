"""Real streaming runs over workloads and settings: run, measured, predicted, published."""
