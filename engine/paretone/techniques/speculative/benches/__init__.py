"""Side-by-side benchmarks of speculative decoding; see :mod:`paretone.bench`."""
