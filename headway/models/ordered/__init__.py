"""Ordered pipelines: workers, reordering, queues, placement of keys."""
