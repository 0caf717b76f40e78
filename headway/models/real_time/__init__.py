"""Real-Time Mode: all stages at once, rows one by one."""
