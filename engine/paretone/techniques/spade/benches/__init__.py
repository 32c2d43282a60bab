"""Side-by-side benchmarks of SPADE students; see :mod:`paretone.bench`."""
