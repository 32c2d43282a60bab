"""Optional packages for studies, and messages if one is missing. Torch-free."""

from __future__ import annotations

from importlib.util import find_spec

NO_SEARCH = "A search needs optuna, which is not installed; run: pip install 'paretone[search]'"
NO_CLUSTER = "Running on a cluster needs ray, which is not installed; run: pip install 'paretone[cluster]'"


def why_no_search() -> str:
    """Why nothing can be searched for here, as a sentence, or ``""``."""
    return "" if find_spec("optuna") else NO_SEARCH


def why_no_cluster() -> str:
    """Why no cluster can be used from here, as a sentence, or ``""``."""
    return "" if find_spec("ray") else NO_CLUSTER
