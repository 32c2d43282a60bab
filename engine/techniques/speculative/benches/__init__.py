"""Side-by-side benchmarks of speculative decoding; see :mod:`engine.bench`."""
