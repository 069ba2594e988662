"""Many experiments side by side: algorithms, environments and seeds."""
