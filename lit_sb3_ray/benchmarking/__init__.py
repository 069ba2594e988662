"""Benchmarks: every run under a folder is played, several at once on Ray, and put in a table beside published figures."""
