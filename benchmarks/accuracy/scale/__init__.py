"""Published runs on several machines, and what Headway's models predict for them."""
