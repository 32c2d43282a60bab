"""Packages that may be absent. They are looked for, not imported: every process that shares the tests collects all of
them, and would import what one file needs."""

from importlib.util import find_spec

import pytest


def needs(*packages: str) -> pytest.MarkDecorator:
    """A mark that skips tests where one of ``packages`` is not installed."""
    absent = [one for one in packages if find_spec(one) is None]
    return pytest.mark.skipif(bool(absent), reason=f"not installed: {', '.join(absent)}")
