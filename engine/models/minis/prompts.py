"""The phones of a voice's recording, as the bundled models that take any recording read it."""

from __future__ import annotations

from engine.front_end.alignment import ESTIMATED, TABLE, Aligner
from engine.front_end.phones import PhoneVocabulary
from engine.front_end.timed_phone import TimedPhone
from engine.models.f5.passages import Prompt
from engine.models.minis.frames import SAMPLE_RATE


def phones_of_prompt(
    read: Prompt, reader: Aligner, vocabulary: PhoneVocabulary | None = None
) -> tuple[tuple[TimedPhone, ...], tuple[str, ...]]:
    """The phones that come with the recording, unless some are not in ``vocabulary``, or else those that are found in
    it; and what the user should know.

    Raises :class:`engine.errors.AudioError` and :class:`engine.errors.TextError`.
    """
    phones = read.voice.phones
    if phones and (vocabulary is None or all(name in vocabulary.index for name, _, _ in phones)):
        return phones, read.notes
    heard = reader.heard(read.samples.numpy(), SAMPLE_RATE, read.voice.transcript)
    return heard.phones, (*read.notes, *((ESTIMATED,) if heard.method == TABLE else ()))
