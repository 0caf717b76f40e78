"""Sharing of windows and exchanges: what is merged, what each way costs, what may be fused."""
