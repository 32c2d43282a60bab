"""Packages that may be absent: looked for, not imported, as every process of the tests collects all of them."""

from importlib.util import find_spec

import pytest


def needs(*packages: str) -> pytest.MarkDecorator:
    """A mark that skips tests where one of ``packages`` is not installed."""
    absent = [one for one in packages if find_spec(one) is None]
    return pytest.mark.skipif(bool(absent), reason=f"not installed: {', '.join(absent)}")
