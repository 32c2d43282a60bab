"""Side-by-side benchmarks of average velocity; see :mod:`paretone.bench`."""
