"""Errors that the user can act on.

Every message is one or two sentences: what is wrong, with which file or value, and what to do. The engine thread turns
these into :class:`paretone.session.events.JobFailed`; the command line prints them and exits with ``exit_code``.
"""

from __future__ import annotations


class PlainError(Exception):
    """A problem that the user can act on; ``str(error)`` is the sentence to show."""

    exit_code = 1
    lacks_transcript = False
    """Whether the words of a voice's recording are missing; the command line says how to give them."""
    command = ""
    """What to type where one command mends it; the command line says so after the sentence."""


class SettingError(PlainError):
    """A knob value, or a combination of techniques, that cannot be used."""

    exit_code = 2


class PlugInError(PlainError):
    """A plug-in that fails, or gives something else than it was asked for."""

    exit_code = 11


class TextError(PlainError):
    """Text that cannot be spoken."""

    exit_code = 3


class AudioError(PlainError):
    """A recording that cannot be used as a voice."""

    exit_code = 4


class CheckpointError(PlainError):
    """A weight file that is missing, damaged, unsafe or of another architecture."""

    exit_code = 5
    candidates: tuple[str, ...] = ()
    """The architectures among which only the user can choose."""
    files: tuple[str, ...] = ()
    """The files of weights among which only the user can choose, the newest first."""


class ProfileError(PlainError):
    """A profile or strategy table that is invalid, or belongs to something else."""

    exit_code = 6


class DeviceError(PlainError):
    """A device that is missing, full or failed."""

    exit_code = 7


class LibraryError(PlainError):
    """The take library could not be read or written."""

    exit_code = 8


class TrainingError(PlainError):
    """Training that cannot start or continue: its data, its folder or its losses."""

    exit_code = 9


class StudyError(PlainError):
    """A study that cannot be read, started or resumed."""

    exit_code = 10


class Cancelled(Exception):
    """Raised inside a job once its cancel token is set. Not an error: nothing is wrong."""

    exit_code = 130
    """As shells have it after Ctrl-C."""
    signal = 0
    """The signal that asked for it, if the job itself has taken it."""
