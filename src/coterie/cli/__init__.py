"""The command line: one file per command, and nothing heavy is imported until a command runs."""
