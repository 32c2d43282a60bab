"""The benchmark of blockwise streaming; see :mod:`paretone.bench`."""
