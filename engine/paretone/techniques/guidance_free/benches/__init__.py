"""Side-by-side benchmarks of CFG-free weights; see :mod:`paretone.bench`."""
