"""What was collected of a streaming query -> its profile."""
