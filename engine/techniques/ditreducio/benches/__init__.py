"""Side-by-side benchmarks of DiTReducio; see :mod:`engine.bench`."""
