"""Studies: search spaces, trials, samplers, pruners, storage and reports. The only place that imports Optuna."""
