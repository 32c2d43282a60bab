"""DiTReducio on the command line: calibrating, measuring, tables as files."""
