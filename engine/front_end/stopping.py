"""Stopping while a text is read. Torch-free.

Reading takes seconds where a text has thousands of digits or of words that no dictionary has, and is done in many
functions that know nothing of jobs. Each that goes on and on asks :func:`may_stop` now and then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar


def _go_on() -> None:
    pass


_check: ContextVar[Callable[[], None]] = ContextVar("check", default=_go_on)


@contextmanager
def stoppable(check: Callable[[], None]) -> Iterator[None]:
    """Let ``check`` end, by raising, what is read within the block in this thread."""
    token = _check.set(check)
    try:
        yield
    finally:
        _check.reset(token)


def may_stop() -> None:
    """Raise if what is being read is to be read no further."""
    _check.get()()
