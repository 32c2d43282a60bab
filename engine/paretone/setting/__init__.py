"""A point of the trade-off space and what comes of it: knobs, settings, takes, profiles and the library. Torch-free."""
