"""Speculative decoding on the command line: training drafts, writing what others load."""
