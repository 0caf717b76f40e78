"""A Kafka broker on this machine, its jars, and the process that fills its topics."""
