"""Fleets: many jobs, the available offers, and their mixed-integer plan.

Input and output are plain numbers: :mod:`headway.api.capacity` creates a `Fleet` from a spec file.
"""
