"""What a study searches, and what draws from it."""
