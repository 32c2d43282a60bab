"""State without widgets: the selection, the comparison and running jobs."""
