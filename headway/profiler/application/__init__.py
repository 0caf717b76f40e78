"""What was collected of a batch or DStreams application -> its profile."""
