"""Runtime scheduling: which rows to process, and which query runs next."""
