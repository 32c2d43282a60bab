"""Judges that tests do without."""

from collections.abc import Iterator

import pytest

from paretone.measure.evaluation import judges
from tests.workload import is_thorough

WEIGHTS = ("distillmos", "resemblyzer")
"""Packages with the weights of judges that hear a take for half a second, however short it is."""


@pytest.fixture(scope="module")
def only_words() -> Iterator[None]:
    """Until the module ends, takes are judged as where only the judges of words and melody are installed. Thorough
    tests ask all of them; so does ``tests/engine/measure/test_verdicts.py``, always."""
    if is_thorough():
        yield
        return
    there = judges.find_spec
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judges, "find_spec", lambda name: None if name in WEIGHTS else there(name))
        yield
