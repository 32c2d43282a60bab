"""Shared by tests of programs."""

from collections.abc import Iterator

import pytest

from paretone.models.llasa import adapter


@pytest.fixture(scope="module")
def patch() -> Iterator[pytest.MonkeyPatch]:
    """LLaSA's random weights end when they like, or not at all."""
    with pytest.MonkeyPatch.context() as found:
        found.setattr(adapter, "CONTEXT", 200)
        yield found
