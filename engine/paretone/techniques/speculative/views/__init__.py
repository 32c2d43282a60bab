"""The table and the figure of the SSD paper."""
