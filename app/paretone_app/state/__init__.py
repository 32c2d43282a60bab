"""The selection, the comparison and running jobs; without widgets."""
