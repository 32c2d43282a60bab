"""Standard output, which must arrive, and standard error, which may be lost."""

from __future__ import annotations

import io
import os
import sys
from typing import Any

from paretone import files
from paretone.errors import PlainError
from paretone.reading import printable


def prepare() -> None:
    """Make this process's standard streams safe to use.

    What cannot be written to standard error, since that is closed or its disk is full, is dropped: a job does not end
    because nobody sees its progress. Raises :class:`PlainError` if standard output is closed, before any work whose
    result would be lost.
    """
    global _left_to_content
    _left_to_content = False
    closed = sys.stdout is None
    if None in (sys.stdin, sys.stdout, sys.stderr):
        _fill_closed()
        sys.stdin, sys.stdout = sys.stdin or os.fdopen(0), sys.stdout or os.fdopen(1, "w")
    if sys.stderr is None or sys.stderr is sys.__stderr__:
        encoding = getattr(sys.stderr, "encoding", "utf-8")
        lost: Any = _MayBeLost()
        sys.stderr = Errors(lost, encoding, errors="backslashreplace", write_through=True)
    if closed:
        raise PlainError("Standard output is closed, so the result would be lost; send it to a file or /dev/null.")


def _fill_closed() -> None:
    """Put the null device where a standard stream is closed. A file that is opened later would get its number, and
    messages of libraries would be written into it."""
    while (handle := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(handle)


class Errors(io.TextIOWrapper):
    """Standard error without control characters, in logging and tracebacks too."""

    def write(self, text: str) -> int:
        return super().write(printable(text))

    def controls(self, text: str) -> int:
        """Write ``text`` as it is: control characters of our own."""
        return super().write(text)


class _MayBeLost(io.RawIOBase):
    """Standard error of the process."""

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return os.isatty(2)

    def fileno(self) -> int:
        return 2

    def write(self, content: object) -> int:
        data = bytes(content)  # type: ignore[call-overload]
        try:
            return os.write(2, data)
        except OSError:
            return len(data)


_left_to_content = False


def leave_to_content() -> None:
    """From now on, :func:`show` prints on standard error: a file is written to standard output."""
    global _left_to_content
    _left_to_content = True


def show(text: str) -> None:
    """Print ``text`` on standard output. Raises :class:`PlainError` where it cannot be written, and
    :class:`BrokenPipeError` where the reader has stopped."""
    text = printable(text)
    if _left_to_content:
        print(text, file=sys.stderr)
        return
    # A Windows pipe may know fewer letters than people write.
    encoding = sys.stdout.encoding or "utf-8"
    try:
        print(text.encode(encoding, "replace").decode(encoding), flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        abandon()
        raise PlainError(f"The result could not be written to standard output: {files.reason(error)}.") from error


def abandon() -> None:
    """Drop what standard output still holds: Python would complain once more when it closes the stream."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
