"""Published runs on more machines than one, and what Headway's laws say of them."""
