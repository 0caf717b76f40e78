"""Where event logs are, and how they become plain lines."""
