"""CFG-free on the command line: training weights."""
