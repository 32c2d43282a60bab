"""Points of the trade-off space and their results: knobs, settings, takes, profiles and the library. Torch-free."""
