"""What is told about clusters: built once here, shown by the command line and whatever else displays it."""
