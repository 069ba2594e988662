"""Configuration: reading hyperparameter files, parsing their values safely, and validating them before anything is built.

Importing this package loads neither torch, nor Stable-Baselines3, nor gymnasium: the functions do, when a value needs it.
"""
