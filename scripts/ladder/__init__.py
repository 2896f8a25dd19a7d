"""What scripts/measure_ladder.py and scripts/write_ladder.py are made of."""
