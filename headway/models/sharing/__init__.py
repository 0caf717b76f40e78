"""Sharing of windows and exchanges: what is merged, costs of each way, what may be fused."""
