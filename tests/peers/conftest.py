"""Comparisons with other implementations are measured with ``--thorough``; the gate imports them."""

from pathlib import Path

import pytest

from tests.workload import only_in_full


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give every test of this folder the mark."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(only_in_full("peers"))
