"""Runtime scheduling: which rows to process, which query runs next."""
