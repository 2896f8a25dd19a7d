"""The champion with one thing changed at a time."""
