"""Check whether a recording says its transcript, and cut both to the length that a model takes. Torch-free.

pocketsphinx, if installed, finds the words of an English transcript in the recording and scores each. Without it, and
for other languages, only sound and pace are checked. Error rates were measured: ``resources/docs/bundled-models.md``.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from paretone.audio.prompt import ENOUGH, is_cut, prepare_prompt
from paretone.audio.recording import Recording
from paretone.errors import AudioError, TextError
from paretone.extras import how_to_add
from paretone.front_end.alignment import forced_words, spelled_words
from paretone.front_end.forced_alignment import FoundWord, installed
from paretone.front_end.phonemiser import default_phonemiser
from paretone.front_end.phones import BLANK, PUNCTUATION, TimedPhone, timed_phones
from paretone.front_end.speakable import is_english, script_of, sentences
from paretone.wording import percent

PHONE = 0.085
"""Mean duration of a phone in seconds, including its share of short pauses."""
FRAME = 0.01
"""Window for levels, in seconds."""
SYLLABLE = 0.05
"""Window for the level's fluctuation, in seconds: longer than the beats of tones."""
AUDIBLE = 35.0
"""Decibels below the loudest frame above which a frame is audible."""
NOISE = 6.0
"""Decibels above the quietest tenth of the frames above which a frame is audible."""
LIVELY = 4.0
"""Least difference between the 10th and 90th percentile of levels in speech, in decibels; steady sounds have less."""
LEAST_FIT = -36.0
"""Mean word score below which a recording does not say the words."""
LEAST_COVERED = 0.65
"""Least share of the audible frames that the words of a complete transcript cover."""
LETTER, SYLLABLE_SIGN, DIGIT = 0.07, 0.2, 0.3
"""Mean seconds per letter, per syllabic character and per digit, for languages without known phones."""
SYLLABIC = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL")
"""Scripts with one character per syllable."""
ROUGHLY = 1.5
"""Factor by which these means may be wrong."""
BRISKEST, CALMEST = 0.53, 2.2
"""Bounds of audible seconds relative to the expected seconds of the words."""
HASTIEST = 0.3
"""Audible share of the expected seconds below which words are not searched."""
LONGER = 1.2
"""A transcript that takes longer than its recording by this factor continues after its end."""
SHOWN_WORDS = 4
"""Words shown at either end of a passage."""
_SENTENCE, _CLAUSE = re.compile(r"[.!?…][\"'”’)]*$"), re.compile(r"[,;:–—][\"'”’)]*$")


def _phones(transcript: str) -> list[TimedPhone]:
    """English text to phones of mean length. Raises :class:`TextError` if nothing in it can be spoken."""
    said = default_phonemiser()(transcript).sentences
    return [phone for one in said for phone in timed_phones(one, [1] * len(one), PHONE)]


@dataclass(frozen=True)
class Hearing:
    """Evidence that a recording says a transcript."""

    audible: float
    """Seconds of the recording without its pauses."""
    lively: bool
    """Whether its level fluctuates like speech."""
    expected: float | None
    """Mean seconds of the transcript's words, a rough estimate if it is ``foreign``; ``None`` if it has no words."""
    words: tuple[FoundWord, ...] = ()
    """Best place of each word; empty without pocketsphinx, or if they cannot be fitted."""
    covered: float = 0.0
    """Share of the audible frames that the words cover."""
    foreign: bool = False
    """Whether the transcript is in a language other than English."""

    @property
    def fit(self) -> float:
        """Mean score of the words, weighted by length."""
        seconds = [word.end - word.start for word in self.words]
        return float(np.average([word.score for word in self.words], weights=seconds)) if seconds else -np.inf

    @property
    def searched(self) -> bool:
        """Whether pocketsphinx looked for the words."""
        return installed() and not self.foreign and self.audible >= HASTIEST * (self.expected or 0.0)


def hear(samples: np.ndarray, rate: int, transcript: str) -> Hearing:
    """Compare mono ``samples`` (n,) with ``transcript``."""
    if len(samples):
        samples = samples - samples.mean()  # A constant offset is no sound.
    levels, slower = _levels(samples, rate, FRAME), _levels(samples, rate, SYLLABLE)
    if not len(slower):
        return Hearing(0.0, False, None)
    audible = levels > max(levels.max() - AUDIBLE, np.quantile(levels, 0.1) + NOISE)
    low, high = np.quantile(slower, (0.1, 0.9))
    foreign = bool(transcript.strip()) and not is_english(transcript)
    heard = Hearing(FRAME * float(audible.sum()), bool(high - low > LIVELY), None, foreign=foreign)
    if foreign:
        # Estimated from the characters.
        letters = [script_of(one) in SYLLABIC for one in transcript if one.isalpha()]
        signs, digits = sum(letters), sum(map(str.isdigit, transcript))
        seconds = SYLLABLE_SIGN * signs + LETTER * (len(letters) - signs) + DIGIT * digits
        return replace(heard, expected=seconds or None)
    try:
        phones = _phones(transcript)
    except TextError:
        return heard
    heard = replace(heard, expected=PHONE * sum(name not in (BLANK, *PUNCTUATION) for name, _, _ in phones))
    if not heard.searched:
        return heard
    words = forced_words(samples, rate, spelled_words(phones))
    spoken = np.zeros(len(levels), bool)
    for word in words:
        spoken[round(word.start / FRAME) : round(word.end / FRAME)] = True
    return replace(heard, words=words, covered=float((spoken & audible).sum() / max(1, audible.sum())))


def remarks(heard: Hearing, name: str) -> tuple[str, ...]:
    """:func:`doubts`; without doubts, a note that a transcript in another language was not checked."""
    return doubts(heard, name) or ((_foreign(name),) if heard.foreign else ())


def doubts(heard: Hearing, name: str) -> tuple[str, ...]:
    """Sentences on why the recording called ``name`` may not say its transcript; empty if it does. For other languages
    only the pace is checked."""
    check = "check that the transcript has exactly the words of the recording"
    if not heard.lively:
        return (f"There seems to be no speech in {name}, only a steady sound; choose a recording of speech.",)
    if heard.expected is None:
        return ()
    if heard.searched:
        if not heard.words:
            return (f"The words of the transcript could not be found in {name}; {check}.",)
        if heard.fit < LEAST_FIT:
            fitting = sum(word.score >= LEAST_FIT for word in heard.words)
            of = f"{fitting} of {len(heard.words)} words fit"
            return (f"{name} does not seem to say its transcript ({of}); {check}.",)
        if heard.covered < LEAST_COVERED:
            return (
                f"{name} says more than its transcript, whose words fill {percent(heard.covered)} of its "
                f"{heard.audible:.1f} s of speech; {check}.",
            )
        return ()
    tolerance = ROUGHLY if heard.foreign else 1.0
    if not BRISKEST / tolerance * heard.expected <= heard.audible <= CALMEST * tolerance * heard.expected:
        amount = "long" if heard.audible < heard.expected else "short"
        return (
            f"The transcript is too {amount} for the {heard.audible:.1f} s of speech in {name}: its words usually take "
            f"about {heard.expected:.1f} s; {check}.",
        )
    return ()


def unchecked(heard: Hearing, name: str) -> str:
    """Sentence on what was not checked in the recording called ``name``, or ``""``."""
    if heard.foreign:
        return _foreign(name)
    if installed() or heard.expected is None:
        return ""
    return (
        "Whether the recording says its transcript was judged by its length alone; to have its words looked for, "
        f"{how_to_add('judge')}."
    )


def _foreign(name: str) -> str:
    return f"Whether {name} says its transcript could not be checked: only English words are looked for."


def _levels(samples: np.ndarray, rate: int, seconds: float) -> np.ndarray:
    """Level of each window of ``seconds``, in dB of full scale."""
    window = max(1, round(seconds * rate))
    frames = samples[: len(samples) // window * window].reshape(-1, window).astype(np.float64)
    return 10 * np.log10(np.mean(frames**2, axis=1) + 1e-12)


# --- Cutting both together --------------------------------------------------------------------------------------------
def fitted(recording: Recording, transcript: str, name: str) -> tuple[Recording, str]:
    """Cut the recording called ``name`` as :func:`prepare_prompt` does, and its transcript at the same place. Raises
    :class:`AudioError` for silence, and for a transcript that is too long and cannot be cut reliably."""
    prepared = prepare_prompt(recording)
    if not is_cut(recording):
        return prepared, transcript
    part = hear(prepared.samples, prepared.sample_rate, transcript)
    longer = ROUGHLY if part.foreign else LONGER
    if part.expected is None or part.expected <= longer * prepared.seconds:
        return prepared, transcript
    if not part.foreign and not doubts(part, name):  # The transcript is of the beginning already.
        return prepared, transcript
    whole = hear(recording.samples, recording.sample_rate, transcript)
    last = None if doubts(whole, name) else _last_that_fits(recording, _timed_words(recording, transcript, whole))
    if last is None:
        raise AudioError(_unfitting(prepared.seconds, transcript, part, whole, name))
    cut = prepare_prompt(_until(recording, last))
    said = transcript[: last.place].strip()
    note = f"{name} was cut to its first {last.until:.1f} s, and its transcript to “{_shown(said)}”."
    return replace(cut, notes=(*cut.notes, note)), said


@dataclass(frozen=True)
class _TimedWord:
    """A written word of a transcript."""

    place: int
    """Index of its end in the text."""
    until: float
    """Seconds at which the recording can be cut after it."""
    ends: int
    """2 if it ends a sentence, 1 if a clause, otherwise 0."""


def _timed_words(recording: Recording, transcript: str, heard: Hearing) -> list[_TimedWord]:
    """Written words with their times; empty without pocketsphinx."""
    if not heard.words:
        return []
    found = []
    for place, count in counted(transcript):
        if 0 < count <= len(heard.words):
            following = heard.words[count].start if count < len(heard.words) else recording.seconds
            ends = next((ends for ends, mark in ((2, _SENTENCE), (1, _CLAUSE)) if mark.search(transcript[:place])), 0)
            found.append(_TimedWord(place, (heard.words[count - 1].end + following) / 2, ends))
    return found


def _until(recording: Recording, word: _TimedWord) -> Recording:
    return replace(recording, samples=recording.samples[: round(word.until * recording.sample_rate)])


def counted(transcript: str) -> list[tuple[int, int]]:
    """End of each written word with the number of spoken words up to it; "1999" counts as several."""
    found, before, start = [], 0, 0
    for sentence in sentences(transcript):
        start = transcript.index(sentence, start)
        written, spoken = list(re.finditer(r"\S+", sentence)), _spoken_words(sentence)
        for number, one in enumerate(written, start=1):
            count = number if spoken == len(written) else _spoken_words(sentence[: one.end()])
            found.append((start + one.end(), before + count))
        before += spoken
        start += len(sentence)
    return found


def _spoken_words(text: str) -> int:
    try:
        return len(spelled_words(_phones(text)))
    except TextError:
        return 0


def _last_that_fits(recording: Recording, words: Sequence[_TimedWord]) -> _TimedWord | None:
    """The last word with which the recording needs no cut, preferably the end of a late enough sentence or clause."""
    fitting = words[: bisect_left(words, True, key=lambda word: is_cut(_until(recording, word)))]
    late = [one for one in fitting if 1000 * one.until >= ENOUGH]
    return max(late or fitting[-1:], key=lambda one: (one.ends, one.until), default=None)


def _unfitting(seconds: float, transcript: str, part: Hearing, whole: Hearing, name: str) -> str:
    """Explain why a transcript cannot be cut with its recording, of which the first ``seconds`` are used. Quote words
    (their end is estimated) if the whole transcript seems to match."""
    if found := doubts(whole, name):
        return f"{found[0]} Of its speech only the first {seconds:.1f} s are used: their words are enough."
    only = (
        f"Only the first {seconds:.1f} s of the speech in {name} are used, but its transcript would take about "
        f"{part.expected:.0f} s."
    )
    if whole.foreign:
        return f"{only} Shorten the transcript to what is said in them."
    if whole.words:
        return f"{only} Use a shorter recording, and shorten the transcript to its words."
    written = counted(transcript)
    last = max(0, min(len(written), round(part.audible / whole.audible * len(written))) - 1)
    return (
        f"{only} These seconds end near “{_shown(transcript[: written[last][0]].strip())}”: shorten the transcript to "
        f"what is said in them, or have it cut with the recording: {how_to_add('judge')}."
    )


def _shown(said: str) -> str:
    """Abbreviate a text to its first and last words."""
    words = said.split()
    if len(words) <= 2 * SHOWN_WORDS + 1:
        return said
    return " ".join([*words[:SHOWN_WORDS], "…", *words[-SHOWN_WORDS:]])
