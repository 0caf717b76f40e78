"""The whole command line under hostile files, options and calls."""
