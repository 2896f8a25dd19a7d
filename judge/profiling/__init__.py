"""`run.py profile`: a profiler's command line around one case, and what its figures say."""
