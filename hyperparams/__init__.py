"""Tuned hyperparameters: one YAML file for each algorithm, installed as the package `lit_sb3_ray.hyperparams`."""
