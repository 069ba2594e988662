"""Reading what others have made (models, statistics, archives) without running any of it."""
