"""Read texts for the bundled models of natural speech: pieces of timed phones, which
:func:`paretone.front_end.phones.labels` turns into one phone per frame of a model."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from paretone.errors import SettingError, TextError
from paretone.front_end.alignment import Alignment, align_phones
from paretone.front_end.networks import default_lengths
from paretone.front_end.phonemiser import default_phonemiser
from paretone.front_end.phones import EDGE, PUNCTUATION, TimedPhone, last_sound, timed_phones
from paretone.front_end.pronunciations import AS_USUAL, HowToRead
from paretone.front_end.speakable import FIRST_PIECE_SECONDS, PIECE_SECONDS, language_of, packed, require_text
from paretone.observer import may_stop

# --- Tempo and emphasis of a sentence ---------------------------------------------------------------------------------
# The length network gives the mean reading. The models' training speech was up to 15 % faster or slower and had an
# emphasised word in two of five sentences; :meth:`Prosody.drawn` draws from the same distribution, so that seeds differ
# in timing as the training speech does.
TEMPOS = (0.85, 1.15)
"""Range of the random tempo of sentences."""
EMPHASISED = 0.4
"""Share of sentences with an emphasised word."""
STRENGTHS = (0.4, 1.0)
LONGER = 0.3
"""Lengthening of a word with full emphasis, as a share."""
FRAME = 0.0125
"""Seconds per latent frame; lengths are multiples of :data:`UNIT_FRAMES` frames unless a word is emphasised."""
UNIT_FRAMES = 2
LEAD, TAIL = 8, 12
"""Maximum silence in frames before the first symbol and after the last."""


@dataclass(frozen=True)
class Prosody:
    tempo: float = 1.0
    """Speed factor; 2 is twice as fast."""
    emphasis: float | None = None
    """Position of the emphasised word, as a share of the words; ``None`` for none."""
    strength: float = 0.0
    """Strength of the emphasis, from 0 to 1."""

    @classmethod
    def drawn(cls, *seed: int) -> Prosody:
        """Draw from the distribution of the training speech."""
        draw = np.random.default_rng([one % 2**64 for one in seed])
        tempo, emphasised = draw.uniform(*TEMPOS), draw.uniform()
        word, strength = draw.uniform(), draw.uniform(*STRENGTHS)
        return cls(tempo, word if emphasised < EMPHASISED else None, strength)

    def spoken(
        self, phonemes: str, units: Callable[[Sequence[str]], np.ndarray], speed: float
    ) -> tuple[TimedPhone, ...]:
        """The phones of a sentence with start and end in seconds, including silence at both ends. ``units`` gives mean
        lengths of symbols in units of 25 ms."""
        symbols = (EDGE, *phonemes, EDGE)
        lengths = UNIT_FRAMES * np.maximum(np.round(units(symbols) / (self.tempo * speed)), 1).astype(int)
        lengths[0], lengths[-1] = min(lengths[0], LEAD), min(lengths[-1], TAIL)
        if self.emphasis is not None:
            inside = word_at(symbols, self.emphasis)
            lengths[inside] = np.diff(np.round(np.cumsum(lengths[inside]) * (1 + LONGER * self.strength)), prepend=0)
        return timed_phones(symbols, lengths.tolist(), FRAME)


def word_at(symbols: Sequence[str], share: float) -> np.ndarray:
    """Indices of the symbols of the word at ``share`` of all words; empty without words."""
    apart = [symbol in (EDGE, " ") or symbol in PUNCTUATION for symbol in symbols]
    numbers = np.cumsum([False, *(before and not here for before, here in pairwise(apart))])
    inside = np.where(apart, 0, numbers)
    return np.flatnonzero(inside == int(share * inside.max()) + 1)


MEL_FRAMES_PER_SECOND = 24000 / 256
SHORTEST_SILENCE = 0.15
"""Least seconds of silence after a sentence that ends a piece, at any speed: the training speech never had less, and
the last sound decays equally slowly."""
LONG, SYMBOL_SECONDS = 600, 0.07
"""Sentences with more symbols are cut anyway, so their length is estimated: seconds per symbol."""


@dataclass(frozen=True)
class NaturalPiece:
    """A piece of text in spoken form: one or more sentences, or part of a long one."""

    text: str
    phonemes: tuple[str, ...]
    """One string per sentence."""
    phones: tuple[TimedPhone, ...] = field(repr=False)
    """Phones with start and end in seconds from the start of the piece; each sentence begins and ends with silence."""

    @property
    def seconds(self) -> float:
        return self.phones[-1][2]

    @property
    def mel_frames(self) -> int:
        """At 93.75 per second."""
        return round(self.seconds * MEL_FRAMES_PER_SECOND)

    @property
    def latent_frames(self) -> int:
        """At 80 per second."""
        return round(self.seconds / FRAME)


class NaturalReader:
    def __init__(self) -> None:
        self._phonemise = default_phonemiser()
        self._read = functools.lru_cache(maxsize=4096)(self._phonemise.phonemes)
        self._units = functools.lru_cache(maxsize=4096)(default_lengths().units)
        self._read("ready")  # Load the lexicon with the model, so that no take pays for it.

    def pieces(self, text: str, how: HowToRead = AS_USUAL) -> tuple[tuple[NaturalPiece, ...], tuple[str, ...]]:
        """Cut ``text`` into pieces; return them with notes for the user. Raises :class:`TextError`, also for other
        languages, and :class:`SettingError` for a speed not above 0."""
        speed, seed = how.speed, how.seed
        if not speed > 0:
            raise SettingError(f"The speed is {speed}, but must be greater than 0.")
        require_text(text)
        language_of(text, "the bundled model speaks only English")
        whole = self._phonemise(text, how)
        phonemes = functools.partial(self._read, pronunciations=how.pronunciations)
        said = [one.text for one in whole.written]
        first = FIRST_PIECE_SECONDS if how.quick_start else None
        found = [
            parts
            for number, group in enumerate([[one] for one in said] if how.by_sentence else [said])
            for parts in packed(
                group,
                lambda parts: sum(self._seconds(one, speed) for one in map(phonemes, parts) if one),
                PIECE_SECONDS,
                None if number else first,
            )
        ]
        found = [spoken for parts in found if (spoken := [part for part in parts if phonemes(part)])]
        pieces = []
        for number, parts in enumerate(found):
            may_stop()
            ended = any(one.endswith(parts[-1]) for one in said)
            made = tuple(map(phonemes, parts))
            pieces.append(self._piece(" ".join(parts), made, ended, speed, None if seed is None else (seed, number)))
        return tuple(pieces), whole.notes

    def heard(self, samples: np.ndarray, rate: int, transcript: str) -> Alignment:
        """Align a recording (n,) at ``rate`` Hz with its text. Raises :class:`AudioError`, :class:`TextError`."""
        said = self._phonemise.read(transcript).sentences
        if not said:
            raise TextError("Nothing in the transcript of the recording can be spoken; type its words, in English.")
        spoken = (phone for phonemes in said for phone in Prosody().spoken(phonemes, self._units, 1.0))
        return align_phones(samples, rate, [phone for phone in spoken if phone[0] != EDGE])

    def _piece(
        self, text: str, phonemes: tuple[str, ...], ended: bool, speed: float, seed: tuple[int, int] | None
    ) -> NaturalPiece:
        """Make a piece of the ``phonemes`` of its sentences; ``ended``: a sentence ends with it."""
        phones: list[TimedPhone] = []
        *before, last = phonemes
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

    def _seconds(self, phonemes: str, speed: float) -> float:
        if len(phonemes) > LONG:
            return len(phonemes) * SYMBOL_SECONDS / speed
        return Prosody().spoken(phonemes, self._units, speed)[-1][2]
