"""Side-by-side benchmarks of average velocity; see :mod:`engine.bench`."""
