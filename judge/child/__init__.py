"""The process that runs a submission: its life, its protocol and what it does inside."""
