"""How speech is drawn: time grids, the integration loop, guidance, and what a skipped module does instead."""
