"""What ends weak trials early: marks, rungs, schedulers, populations."""
