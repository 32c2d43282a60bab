"""Fixtures were made in float32 on one thread of a CPU."""

import pytest

from tests.parity import fixtures


@pytest.fixture(autouse=True)
def full_precision() -> None:
    fixtures.full_precision()
