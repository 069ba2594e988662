"""The command line: one module a command; each parses, builds the configuration, calls the library and prints."""
