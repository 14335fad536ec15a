"""The command line: one file a command, nothing heavy imported until a command runs."""
