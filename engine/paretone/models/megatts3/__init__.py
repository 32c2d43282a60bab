"""ByteDance's MegaTTS 3."""
