"""Pure functions of numbers: queues, order statistics, makespans, micro-batches.

Arguments outside their ranges raise ``ValueError``.
"""
