"""Fleets: many jobs, what can be bought for them, and the mixed-integer plan that does it.

Pure numbers in and out: :mod:`headway.api.capacity` makes a `Fleet` of a spec file.
"""
