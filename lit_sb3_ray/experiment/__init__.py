"""One experiment: its run folder, training, evaluation, checkpoints, resuming and loading."""
