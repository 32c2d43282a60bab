"""Average velocity on the command line: training weights."""
