"""Ordinary jobs: Nexmark queries and jobs of a shop, run as production has them and judged."""
