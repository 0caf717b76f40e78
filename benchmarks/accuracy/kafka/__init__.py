"""A real Kafka broker beside a real query: started, filled, measured, stopped."""
