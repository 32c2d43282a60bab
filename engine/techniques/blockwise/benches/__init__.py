"""The benchmark of blockwise streaming; see :mod:`engine.bench`."""
