"""Errors that the user can act on, and a sentence for every other exception. Torch-free.

Every message is one or two sentences: the problem, the file or value, and the remedy. The engine thread turns these
into :class:`paretone.session.events.JobFailed`; the command line prints them and exits with ``exit_code``.
"""

from __future__ import annotations

import contextlib
import errno
import traceback
from collections.abc import Callable, Iterator

from paretone.wording import listed


class PlainError(Exception):
    """A problem that the user can act on; ``str(error)`` is the sentence to show."""

    exit_code = 1
    lacks_transcript = False
    """Whether the transcript of a voice's recording is missing; the command line says how to give it."""
    command = ""
    """Remedy as a command, printed by the command line after the sentence."""

    def __init_subclass__(cls, exit_code: int = 0) -> None:
        cls.exit_code = exit_code or cls.exit_code


class SettingError(PlainError, exit_code=2):
    """A knob value, or a combination of techniques, that cannot be used."""


class PlugInError(PlainError, exit_code=11):
    """A plug-in that fails, or gives something else than it was asked for."""


class TextError(PlainError, exit_code=3):
    """Text that cannot be spoken."""


class AudioError(PlainError, exit_code=4):
    """A recording that cannot be used as a voice."""


class CheckpointError(PlainError, exit_code=5):
    """A weight file that is missing, damaged, unsafe or of another architecture."""

    candidates: tuple[str, ...] = ()
    """Architectures for the user to choose from."""
    files: tuple[str, ...] = ()
    """Weights files for the user to choose from, newest first."""


class ProfileError(PlainError, exit_code=6):
    """A profile or strategy table that is invalid, or belongs to something else."""


class DeviceError(PlainError, exit_code=7):
    """A device that is missing, full or failed."""


class LibraryError(PlainError, exit_code=8):
    """The take library could not be read or written."""


class TrainingError(PlainError, exit_code=9):
    """Training that cannot start or continue: its data, its folder or its losses."""


class FaultError(PlainError, exit_code=12):
    """A take has faults, and --strict was given."""


class StudyError(PlainError, exit_code=10):
    """A study that cannot be read, started or resumed."""


class Cancelled(Exception):
    """Raised inside a job once its cancel token is set. Not an error: nothing is wrong."""

    exit_code = 130
    """As in shells after Ctrl-C."""
    signal = 0
    """Signal that caused the cancellation, if the job handled it itself."""


plug_ins: dict[str, str] = {}
"""Names of plug-ins for messages, by package of their code; filled by :mod:`paretone.plug_ins`."""
_FULL = (
    *("out of memory", "not enough memory", "can't allocate memory", "failed to allocate", "alloc_failed"),
    "invalid buffer size",
)
"""Torch's messages on lack of memory: allocators of CPU, CUDA and MPS, and cuBLAS."""
_OF_NAMES = errno.EACCES, errno.ENAMETOOLONG
"""Errors of a name the user gave; pathlib raises them where it is asked whether there is such a file."""
_LOST = (
    *("cuda error", "device-side assert", "unspecified launch failure", "illegal memory access"),
    *("uncorrectable ecc", "status_execution_failed", "command buffer"),
)
"""Messages after a GPU failure, which loses everything on the GPU."""


def is_device_lost(error: BaseException) -> bool:
    """Whether ``error`` reports a GPU failure, after which nothing on it is usable."""
    if not isinstance(error, RuntimeError) or is_out_of_memory(error):
        return False
    return any(words in str(error).lower() for words in _LOST)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether ``error`` reports lack of memory, on any device and from any library."""
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
        return True
    return isinstance(error, RuntimeError) and any(words in str(error).lower() for words in _FULL)


@contextlib.contextmanager
def told(say: Callable[[str], object]) -> Iterator[None]:
    """Pass the sentence of a :class:`PlainError` within to ``say``."""
    try:
        yield
    except PlainError as error:
        say(str(error))


@contextlib.contextmanager
def placed(kind: type[PlainError], where: object) -> Iterator[None]:
    """Raise ``kind`` in place of a :class:`PlainError` or a system's error within, with ``where`` before it."""
    try:
        yield
    except (PlainError, OSError) as error:
        raise kind(f"{where}: {sentence(error, 'reading it')}") from error


@contextlib.contextmanager
def enough_memory(device: str, what: str) -> Iterator[None]:
    """Turn lack of memory on ``device`` into :class:`DeviceError`, which names ``what``, such as ``a passage of about
    900 speech tokens``."""
    try:
        yield
    except (MemoryError, RuntimeError, OSError) as error:
        if not is_out_of_memory(error):
            raise
        raise DeviceError(
            f"{device} ran out of memory at {what}; use a shorter text or recording, close other programs, or load a "
            "smaller model."
        ) from error


def sentence(error: BaseException, activity: str, device: str = "cpu", afterwards: str = "") -> str:
    """Sentence for the user: the failure during ``activity`` (such as ``calibrating``) on ``device``, and the remedy.
    ``afterwards``: what happens after an unforeseen error."""
    if isinstance(error, PlainError):
        return str(error)
    if is_out_of_memory(error):
        first = "unload the current model first" if activity.startswith("loading") else "use a shorter text"
        if device.startswith("cpu"):
            where, others = "This machine", ["close other programs"]
        else:
            where, others = "The graphics card", ["close other programs that use it", "load the model on the CPU"]
        return f"{where} ran out of memory while {activity}; {listed([first, *others], 'or')}."
    if is_device_lost(error):
        return (
            f"The graphics card failed while {activity}; the model is loaded again, on the processor if the card does "
            "not answer. Details are in the log."
        )
    if isinstance(error, OSError):
        return _system_error(error, activity)
    said = f"Something unexpected went wrong while {activity}: {type(error).__name__}: {error}."
    frames = (frame for frame, _ in traceback.walk_tb(error.__traceback__))
    packages = (str(frame.f_globals.get("__name__", "")).partition(".")[0] for frame in frames)
    owner = next((plug_ins[one] for one in packages if one in plug_ins), "")
    advice = f"That is in {owner}; mend it, or do without it." if owner else ""
    return " ".join(filter(None, (said, advice, afterwards)))


def exit_code(error: BaseException) -> int:
    return getattr(error, "exit_code", PlainError.exit_code)


def failure(said: str, error: BaseException) -> dict[str, object]:
    """JSON of an ``error`` for ``--json``; ``said``: its sentence."""
    return {"error": said, "kind": type(error).__name__, "exit_code": exit_code(error)}


def details(error: BaseException) -> str:
    """Traceback for the log; ``""`` if the sentence explains the problem in full. Authors of plug-ins get theirs."""
    explained = isinstance(error, PlainError) and not (isinstance(error, PlugInError) and error.__cause__)
    explained |= isinstance(error, OSError) and bool(error.filename) and error.errno in _OF_NAMES
    return "" if explained else "".join(traceback.format_exception(error))


def _system_error(error: OSError, activity: str) -> str:
    name = str(error.filename or "")
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"The disk is full{f' at {name}' if name else ''}; free some space and try again."
    if isinstance(error, FileNotFoundError) and name:
        return f"The file {name} is missing, which is needed for {activity}; put it back or choose another."
    if isinstance(error, PermissionError) and name:
        return f"{name} may not be opened; change its permissions or choose another place."
    if error.errno == errno.ENAMETOOLONG and name:
        return f"The name {name[:99]}… is too long for a file; check it, or choose a shorter one."
    if isinstance(error, ConnectionError | TimeoutError):
        return f"The connection broke while {activity} ({error}); check the network and try again."
    reason = error.strerror or str(error) or type(error).__name__
    return f"The system refused {name or 'an operation'} while {activity}: {reason}. Try again or choose another place."
