"""Runs compared: their monitor files and evaluations read, aggregated, drawn and tabled, without a display."""
