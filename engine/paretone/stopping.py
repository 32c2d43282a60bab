"""Stopping a job in functions that know nothing of jobs. Torch-free.

Reading takes seconds where a text has thousands of digits or of words that no dictionary has, and validating a training
takes minutes where the model is large. Whatever goes on and on asks :func:`may_stop` now and then.
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
    """Let ``check`` end, by raising, what this thread does within the block. Checks of outer blocks stay in force."""
    around = _check.get()

    def both() -> None:
        check()
        around()

    token = _check.set(both)
    try:
        yield
    finally:
        _check.reset(token)


def may_stop() -> None:
    """Raise if what is being done is to be stopped."""
    _check.get()()
