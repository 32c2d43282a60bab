"""Side-by-side benchmarks of DiTReducio; see :mod:`paretone.bench`."""
