"""Makes ``tests.factories`` importable; the folders below need no such file."""
