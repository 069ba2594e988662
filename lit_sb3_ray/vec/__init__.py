"""Vectorised environments whose members live in Ray actors.

This file imports nothing: the actors import modules beside it before they know which libraries they may load.
"""
