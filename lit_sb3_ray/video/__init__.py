"""Videos of trained agents: the only place that draws on pictures and calls ffmpeg."""
