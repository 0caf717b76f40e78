"""Plans of jobs that are not micro-batch queries: each kind offers its own settings."""
