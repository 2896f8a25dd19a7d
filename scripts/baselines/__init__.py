"""What docs/baselines.md's tables are made of."""
