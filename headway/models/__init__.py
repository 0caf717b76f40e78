"""Pure functions of numbers: queues, order statistics, makespans, micro-batches."""
