"""Connecting to Ray and counting what it has."""
