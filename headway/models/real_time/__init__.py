"""Real-Time Mode: all stages run at the same time, rows are processed one by one."""
