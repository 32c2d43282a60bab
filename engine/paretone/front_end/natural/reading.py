"""Texts as bundled models of natural speech speak them: pieces of phones with their times.

What a model's front end uses::

    reader = NaturalReader()
    pieces, notes = reader.pieces("Is it 5:30 already?", speed=1.0, quick_start=True, seed=7)
    ids = labels(pieces[0].phones, pieces[0].mel_frames, vocabulary)            # a phone a mel frame, 93.75 a second
    ids = labels(pieces[0].phones, pieces[0].latent_frames, vocabulary, hop=300)  # a phone a latent frame, 80 a second

(:func:`paretone.front_end.frame_phones.labels`; ``vocabulary`` is the model's ``PhoneVocabulary``.) Words are between
blanks and punctuation: :func:`paretone.front_end.natural.phones.words`.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field

import numpy as np

from paretone.errors import SettingError, TextError
from paretone.front_end.alignment import Alignment
from paretone.front_end.chunking import FIRST_PIECE_SECONDS, PIECE_SECONDS, chunks, sentences
from paretone.front_end.language import language_of
from paretone.front_end.natural.aligning import align_phones
from paretone.front_end.natural.lengths import SymbolLengths, default_lengths
from paretone.front_end.natural.phonemiser import NaturalPhonemiser, NaturalText
from paretone.front_end.natural.phones import EDGE, PUNCTUATION, last_sound
from paretone.front_end.natural.prosody import FRAME, Prosody
from paretone.front_end.timed_phone import TimedPhone
from paretone.stopping import may_stop

MEL_FRAMES_PER_SECOND = 24000 / 256
SHORTEST_SILENCE = 0.15
"""Seconds of silence after the last sound of a sentence that ends a piece, however fast it is spoken: at the speed of
the training speech, none had less, and the last sound rings on as long as ever."""
LONG, SYMBOL_SECONDS = 600, 0.07
"""Symbols of a sentence that is cut in any case, and what one takes about."""


@dataclass(frozen=True)
class NaturalPiece:
    """A piece of text as it will be spoken: one sentence or more, or a part of a long one."""

    text: str
    phonemes: tuple[str, ...]
    """Of each sentence."""
    phones: tuple[TimedPhone, ...] = field(repr=False)
    """With start and end in seconds from the start of the piece; every sentence begins and ends with silence."""

    @property
    def seconds(self) -> float:
        return self.phones[-1][2]

    @property
    def mel_frames(self) -> int:
        """At 93.75 a second."""
        return round(self.seconds * MEL_FRAMES_PER_SECOND)

    @property
    def latent_frames(self) -> int:
        """At 80 a second."""
        return round(self.seconds / FRAME)


class NaturalReader:
    """Reads English."""

    def __init__(self, phonemise: NaturalPhonemiser | None = None, lengths: SymbolLengths | None = None) -> None:
        self._phonemise = phonemise or NaturalPhonemiser()
        self._lengths = lengths or default_lengths()
        self._read = functools.lru_cache(maxsize=4096)(self._phonemise.read)
        self._units = functools.lru_cache(maxsize=4096)(self._lengths.units)
        self._read("ready")  # The lexicon is loaded with the model, so that no take pays for it.

    def pieces(
        self,
        text: str,
        speed: float = 1.0,
        quick_start: bool = False,
        by_sentence: bool = False,
        seed: int | None = None,
    ) -> tuple[tuple[NaturalPiece, ...], tuple[str, ...]]:
        """``text`` in pieces, and what the user should know. With ``quick_start`` the first piece is shorter, so that
        it is heard sooner; with ``by_sentence`` no piece has more than one sentence. The prosody of each sentence is
        drawn from ``seed``, or the mean one without.

        Raises :class:`TextError`, for texts in other languages too, and :class:`SettingError` for a
        speed that is not positive.
        """
        if not speed > 0:
            raise SettingError(f"The speed is {speed}, but must be greater than 0.")
        self._phonemise.check(text)
        language_of(text, "the bundled model speaks only English")
        whole = self._phonemise(text)
        first = FIRST_PIECE_SECONDS if quick_start else None
        found = [
            piece
            for number, part in enumerate(sentences(text) if by_sentence else [text])
            for piece in chunks(
                part, lambda piece: self._mean_seconds(piece, speed), PIECE_SECONDS, None if number else first
            )
        ]
        spoken = [piece for piece in found if self._read(piece).sentences]
        whole_sentences = sentences(text)
        pieces = []
        for number, piece in enumerate(spoken):
            may_stop()
            ended = any(one.endswith(piece) or piece.endswith(one) for one in whole_sentences)
            pieces.append(self._piece(piece, ended, speed, None if seed is None else (seed, number)))
        return tuple(pieces), whole.notes

    def heard(self, samples: np.ndarray, rate: int, transcript: str) -> Alignment:
        """The phones of a recording (n,) at ``rate`` Hz.

        Raises :class:`paretone.errors.AudioError` and :class:`TextError`.
        """
        said = self._phonemise.read(transcript).sentences
        if not said:
            raise TextError("Nothing in the transcript of the recording can be spoken; type its words, in English.")
        spoken = (phone for phonemes in said for phone in Prosody().spoken(phonemes, self._units, 1.0))
        return align_phones(samples, rate, [phone for phone in spoken if phone[0] != EDGE])

    def text(self, text: str) -> NaturalText:
        """A text as it is read, without times. Raises :class:`TextError` when nothing in it can be spoken."""
        return self._phonemise(text)

    def _piece(self, text: str, ended: bool, speed: float, seed: tuple[int, int] | None) -> NaturalPiece:
        """A piece, at whose end a sentence is ``ended`` or goes on."""
        phones: list[TimedPhone] = []
        *before, last = self._read(text).sentences
        said = (*before, f"{last}." if ended and last[-1] not in PUNCTUATION else last)
        for place, phonemes in enumerate(said):
            prosody = Prosody() if seed is None else Prosody.drawn(*seed, place)
            start = phones[-1][2] if phones else 0.0
            timed = prosody.spoken(phonemes, self._units, speed)
            phones += ((name, round(begin + start, 4), round(end + start, 4)) for name, begin, end in timed)
        name, start, end = phones[-1]
        if ended:
            phones[-1] = name, start, max(end, round(last_sound(phones) + SHORTEST_SILENCE, 4))
        return NaturalPiece(text, said, tuple(phones))

    def _mean_seconds(self, text: str, speed: float) -> float:
        return sum(self._sentence_seconds(phonemes, speed) for phonemes in self._read(text).sentences)

    def _sentence_seconds(self, phonemes: str, speed: float) -> float:
        if len(phonemes) > LONG:
            return len(phonemes) * SYMBOL_SECONDS / speed
        return Prosody().spoken(phonemes, self._units, speed)[-1][2]
