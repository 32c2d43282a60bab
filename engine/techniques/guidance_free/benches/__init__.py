"""Side-by-side benchmarks of CFG-free weights; see :mod:`engine.bench`."""
