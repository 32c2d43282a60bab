"""MegaTTS 3, of ByteDance."""
