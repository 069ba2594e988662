"""What a study leaves for its readers."""
