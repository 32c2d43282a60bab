"""Whether a recording says its transcript, and both cut to what a model takes. Torch-free.

pocketsphinx, where it is installed, finds the words of an English transcript in the recording and says how well each
fits. Without it, and for other languages, sound and pace alone tell. How often this is right and wrong was measured:
``resources/docs/bundled-models.md``.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from paretone.audio.prompt import ENOUGH, is_cut, prepare_prompt
from paretone.audio.recording import Recording
from paretone.errors import AudioError, TextError
from paretone.extras import how_to_add
from paretone.front_end.alignment import forced_words, spelled_words
from paretone.front_end.chunking import sentences
from paretone.front_end.forced_alignment import FoundWord, installed
from paretone.front_end.phonemiser import NaturalPhonemiser
from paretone.front_end.phones import BLANK, PUNCTUATION, TimedPhone, timed_phones
from paretone.front_end.speakable import ENGLISH, language_of, script_of
from paretone.wording import percent

PHONE = 0.085
"""Mean seconds of a phone with its share of short pauses."""
FRAME = 0.01
"""Seconds over which levels are measured."""
SYLLABLE = 0.05
"""Seconds over which a level that goes up and down is measured: beats of tones are faster."""
AUDIBLE = 35.0
"""Decibels below the loudest frame down to which something is said."""
NOISE = 6.0
"""Decibels by which it is louder than the quietest tenth of the frames."""
LIVELY = 4.0
"""Decibels between the levels of a tenth and nine tenths of the frames: more in speech, less in steady sounds."""
LEAST_FIT = -36.0
"""Mean score of the words below which a recording does not say them."""
LEAST_COVERED = 0.65
"""Share of the audible frames that the words of a whole transcript cover at least."""
LETTER, SYLLABLE_SIGN, DIGIT = 0.07, 0.2, 0.3
"""Mean seconds of a letter, of a character that stands for a syllable, and of a digit, in languages whose phones are
not known."""
SYLLABIC = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL")
"""Scripts of such characters."""
ROUGHLY = 1.5
"""Factor by which these means may be wrong."""
BRISKEST, CALMEST = 0.53, 2.2
"""Bounds of the audible seconds, relative to those that the words take on average."""
HASTIEST = 0.3
"""The same, below which words need not be looked for."""
LONGER = 1.2
"""A transcript that takes longer than its recording by this factor goes on after its end."""
SHOWN_WORDS = 4
"""Words at either end of a passage that are shown."""
_SENTENCE, _CLAUSE = re.compile(r"[.!?…][\"'”’)]*$"), re.compile(r"[,;:–—][\"'”’)]*$")


@functools.cache
def _phonemiser() -> NaturalPhonemiser:
    return NaturalPhonemiser()


def _phones(transcript: str) -> list[TimedPhone]:
    """The phones of an English text, of mean length. Raises :class:`TextError` when nothing in it can be spoken."""
    said = _phonemiser()(transcript).sentences
    return [phone for one in said for phone in timed_phones(one, [1] * len(one), PHONE)]


@dataclass(frozen=True)
class Hearing:
    """What is heard of a transcript in a recording."""

    audible: float
    """Seconds of the recording without its pauses."""
    lively: bool
    """Whether its level goes up and down as that of speech does."""
    expected: float | None
    """Mean seconds of the transcript's words, a rough guess if it is ``foreign``; ``None`` if it has none."""
    words: tuple[FoundWord, ...] = ()
    """Where each word fits best; none without pocketsphinx, or where they cannot be fitted at all."""
    covered: float = 0.0
    """Share of the audible frames that they cover."""
    foreign: bool = False
    """Whether the transcript is in another language than English."""

    @property
    def fit(self) -> float:
        """Mean score of the words, by their length."""
        seconds = [word.end - word.start for word in self.words]
        return float(np.average([word.score for word in self.words], weights=seconds)) if seconds else -np.inf

    @property
    def searched(self) -> bool:
        """Whether pocketsphinx looked for the words."""
        return installed() and not self.foreign and self.audible >= HASTIEST * (self.expected or 0.0)


def hear(samples: np.ndarray, rate: int, transcript: str) -> Hearing:
    """What is heard of ``transcript`` in mono ``samples`` (n,)."""
    if len(samples):
        samples = samples - samples.mean()  # A constant offset is no sound.
    levels, slower = _levels(samples, rate, FRAME), _levels(samples, rate, SYLLABLE)
    if not len(slower):
        return Hearing(0.0, False, None)
    audible = levels > max(levels.max() - AUDIBLE, np.quantile(levels, 0.1) + NOISE)
    low, high = np.quantile(slower, (0.1, 0.9))
    foreign = bool(transcript.strip()) and not _is_english(transcript)
    heard = Hearing(FRAME * float(audible.sum()), bool(high - low > LIVELY), None, foreign=foreign)
    if foreign:
        return replace(heard, expected=_rough_seconds(transcript))
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


def _is_english(text: str) -> bool:
    try:
        return language_of(text, "") == ENGLISH
    except TextError:  # It looks like another one.
        return False


def _rough_seconds(text: str) -> float | None:
    """Seconds that a text in any language takes, by its characters."""
    letters = [script_of(one) in SYLLABIC for one in text if one.isalpha()]
    syllabic = sum(letters)
    seconds = SYLLABLE_SIGN * syllabic + LETTER * (len(letters) - syllabic) + DIGIT * sum(map(str.isdigit, text))
    return seconds or None


def remarks(heard: Hearing, name: str) -> tuple[str, ...]:
    """:func:`doubts`, or else that there could be none, because the transcript is in another language."""
    return doubts(heard, name) or ((_foreign(name),) if heard.foreign else ())


def doubts(heard: Hearing, name: str) -> tuple[str, ...]:
    """Why the recording called ``name`` may not say its transcript, in sentences; none if it does. Of another language
    only the pace is known."""
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
    """What was not checked of the recording called ``name``, as a sentence, or ``""``."""
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
    """Level of every part of ``seconds``, in dB of full scale."""
    window = max(1, round(seconds * rate))
    frames = samples[: len(samples) // window * window].reshape(-1, window).astype(np.float64)
    return 10 * np.log10(np.mean(frames**2, axis=1) + 1e-12)


# --- Both cut together ------------------------------------------------------------------------------------------------
def fitted(recording: Recording, transcript: str, name: str) -> tuple[Recording, str]:
    """The recording called ``name`` as :func:`prepare_prompt` gives it, and its transcript without the words of what is
    cut off at its end.

    Raises :class:`AudioError` for silence, and for a longer transcript of which it cannot be told where to cut it.
    """
    prepared = prepare_prompt(recording)
    if not is_cut(recording):
        return prepared, transcript
    part = hear(prepared.samples, prepared.sample_rate, transcript)
    longer = ROUGHLY if part.foreign else LONGER
    if part.expected is None or part.expected <= longer * prepared.seconds:
        return prepared, transcript
    if not part.foreign and not doubts(part, name):  # Of the beginning already.
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
    """Where it ends in the text."""
    until: float
    """Seconds where the recording can be cut after it."""
    ends: int
    """2 if a sentence ends with it, 1 for a clause, otherwise 0."""


def _timed_words(recording: Recording, transcript: str, heard: Hearing) -> list[_TimedWord]:
    """The written words with their times; none without pocketsphinx."""
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
    """The end of each written word, and the number of spoken ones up to it: "1999" is several."""
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
    """The last word up to which the rules need not cut the recording; the end of a sentence or clause if there is one
    that is late enough."""
    low, high = 0, len(words)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if is_cut(_until(recording, words[middle])) else (middle + 1, high)
    fitting = words[:low]
    late = [one for one in fitting if 1000 * one.until >= ENOUGH]
    return max(late or fitting[-1:], key=lambda one: (one.ends, one.until), default=None)


def _unfitting(seconds: float, transcript: str, part: Hearing, whole: Hearing, name: str) -> str:
    """Why a transcript cannot be cut with its recording, of which the first ``seconds`` are used. Words are quoted if
    the whole transcript seems to be the recording's; where they end is estimated."""
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
    """The first and last words of a text."""
    words = said.split()
    if len(words) <= 2 * SHOWN_WORDS + 1:
        return said
    return " ".join([*words[:SHOWN_WORDS], "…", *words[-SHOWN_WORDS:]])
