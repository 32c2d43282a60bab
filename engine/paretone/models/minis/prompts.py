"""The phones of a voice's recording, as the bundled models that take any recording read it."""

from __future__ import annotations

from paretone.front_end.alignment import Aligner, alignment_notes
from paretone.front_end.phones import TimedPhone
from paretone.models.f5.front_end import Prompt
from paretone.models.minis.frames import SAMPLE_RATE


def phones_of_prompt(read: Prompt, reader: Aligner) -> tuple[tuple[TimedPhone, ...], tuple[str, ...]]:
    """The phones that come with the recording, or else those that are found in it; and what the user should know.

    Raises :class:`paretone.errors.AudioError` and :class:`paretone.errors.TextError`.
    """
    if read.voice.phones:
        return read.voice.phones, read.notes
    heard = reader.heard(read.samples.numpy(), SAMPLE_RATE, read.voice.transcript)
    return heard.phones, (*read.notes, *alignment_notes(heard))
