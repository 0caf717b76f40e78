"""What runs beside a query: sources, workloads, measurement, later tuner and schedulers."""
