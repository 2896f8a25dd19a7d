"""What was graded, kept in one SQLite file."""
