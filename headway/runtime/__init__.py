"""Code that runs with a query: sources, workloads, measurement, tuner, gate, shared windows."""
