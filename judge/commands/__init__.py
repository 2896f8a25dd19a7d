"""The commands beside grading, each with its options and wiring."""
