"""Word error rate by an offline recogniser that knows only the test sentences.

The judge is pocketsphinx with the acoustic model of its wheel. Its language model is a bigram of the test sentences
themselves, so neither a large vocabulary nor general English helps or hurts. Recordings are resampled to 16 kHz, padded
with 0.2 s of silence at both ends, set to a fixed level and given a trace of fixed noise. Figures are meaningful only
relative to the same judge's figure for the original speech.
"""

from __future__ import annotations

import math
import re
import tempfile
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from paretone.audio.resampling import resample
from paretone.errors import PlainError, TextError
from paretone.extras import how_to_add, needing
from paretone.front_end.alignment import aligner_phones
from paretone.front_end.phonemiser import default_phonemiser
from paretone.measure.estimates import bootstrap, rate
from paretone.observer import may_stop

if TYPE_CHECKING:
    from types import ModuleType

JUDGE_RATE = 16000
SILENCE_SECONDS = 0.2
LEVEL = 0.08
"""Root mean square of each recording after scaling, full scale 1."""
NOISE = 1e-4
LONGEST_SECONDS = 60.0
"""Longer recordings are split at quiet moments, so that judging an hour can be cancelled."""
CUT_SECONDS = 10.0
"""A piece ends at the quietest moment of its last seconds."""
_QUIET_SECONDS = 0.05
DISCOUNT = 0.5
"""Discount on each bigram count, given to unseen pairs."""
START, END = "<s>", "</s>"
WORD = "[a-z']+"


def words_of(sentence: str) -> list[str]:
    return re.findall(WORD, sentence.lower())


@dataclass(frozen=True)
class WordErrors:
    """Edits and words of each sentence."""

    edits: tuple[int, ...] = ()
    words: tuple[int, ...] = ()
    heard: tuple[str, ...] = ()
    """Transcripts."""

    def __add__(self, more: WordErrors) -> WordErrors:
        return WordErrors(self.edits + more.edits, self.words + more.words, self.heard + more.heard)

    @property
    def rate(self) -> float:
        return sum(self.edits) / sum(self.words)

    def interval(self, draws: int = 2000, seed: int = 0) -> tuple[float, float]:
        """95 % bootstrap interval of :attr:`rate` over sentences."""
        return bootstrap(rate, np.array(self.edits), np.array(self.words), draws=draws, seed=seed)[1:]


class Judge:
    """Recogniser limited to ``sentences``. Raises :class:`PlainError` if pocketsphinx or jiwer is not installed."""

    def __init__(self, sentences: Sequence[str]) -> None:
        if not any(words_of(sentence) for sentence in sentences):
            raise TextError("There are no test sentences with words; give at least one.")
        pocketsphinx, self._jiwer = _required("pocketsphinx"), _required("jiwer")
        with tempfile.TemporaryDirectory() as folder:
            model, dictionary = Path(folder, "sentences.arpa"), Path(folder, "words.dict")
            model.write_text(bigram_model([words_of(sentence) for sentence in sentences]), encoding="ascii")
            known = Path(pocketsphinx.get_model_path("en-us/cmudict-en-us.dict")).read_text(encoding="utf-8")
            dictionary.write_text(_dictionary(sentences, known), encoding="ascii")
            self._decoder = pocketsphinx.Decoder(
                samprate=JUDGE_RATE, loglevel="FATAL", dict=str(dictionary), lm=str(model)
            )

    def hear(self, samples: np.ndarray, rate: int) -> str:
        """Transcript of mono ``samples`` (n,) at ``rate`` Hz. Can be stopped once per minute of speech."""
        if not len(samples) or not np.isfinite(samples).all():
            return ""  # a take that failed says none of its words; leaving it out would improve the rate
        silence = np.zeros(round(SILENCE_SECONDS * JUDGE_RATE), np.float32)
        padded = np.concatenate([silence, resample(samples, rate, JUDGE_RATE), silence])
        padded *= LEVEL / max(NOISE, float(np.sqrt(np.mean(padded**2))))
        padded += NOISE * np.random.default_rng(0).standard_normal(len(padded)).astype(np.float32)
        heard = []
        # Otherwise the noise that it has tracked in the recordings before decides what it hears in this one.
        self._decoder.reinit_feat()
        for piece in pieces(padded):
            may_stop()
            self._decoder.start_utt()
            self._decoder.process_raw((piece.clip(-1, 1) * 32767).astype(np.int16).tobytes(), full_utt=True)
            self._decoder.end_utt()
            hypothesis = self._decoder.hyp()
            heard += [hypothesis.hypstr] if hypothesis else []
        return " ".join(heard)

    def word_errors(self, sentences: Sequence[str], recordings: Sequence[tuple[np.ndarray, int]]) -> WordErrors:
        """Errors in ``recordings`` (mono samples and rate), one per sentence."""
        references = [words_of(sentence) for sentence in sentences]
        if len(references) != len(recordings) or not all(references):
            raise TextError(f"{len(references)} sentences with words are needed for {len(recordings)} recordings.")
        heard = [" ".join(words_of(self.hear(samples, rate))) for samples, rate in recordings]
        found = [self._jiwer.process_words(" ".join(one), said) for one, said in zip(references, heard, strict=True)]
        edits = tuple(one.substitutions + one.deletions + one.insertions for one in found)
        return WordErrors(edits, tuple(map(len, references)), tuple(heard))


def pieces(samples: np.ndarray) -> list[np.ndarray]:
    """``samples`` (n,) at 16 kHz in pieces of at most :data:`LONGEST_SECONDS`, cut at quiet moments."""
    longest, last, moment = (round(one * JUDGE_RATE) for one in (LONGEST_SECONDS, CUT_SECONDS, _QUIET_SECONDS))
    found = []
    while len(samples) > longest:
        end = samples[longest - last : longest // moment * moment]
        levels = (end[: len(end) // moment * moment].reshape(-1, moment) ** 2).sum(1)
        cut = longest - last + int(levels.argmin()) * moment + moment // 2
        found.append(samples[:cut])
        samples = samples[cut:]
    return [*found, samples]


def _dictionary(sentences: Sequence[str], known: str) -> str:
    """Lines of pocketsphinx's dictionary for the words of ``sentences``, and our pronunciations of missing words. (With
    the whole dictionary, starting the decoder takes many seconds.)"""
    # Original case: capitals may be spelled letters.
    words = {one.lower(): one for sentence in sentences for one in re.findall(WORD, sentence, re.IGNORECASE)}
    lines = [line for line in known.splitlines() if line.partition(" ")[0].partition("(")[0] in words]
    read = default_phonemiser().read
    for word in sorted(words.keys() - {line.partition(" ")[0] for line in lines}):
        lines.append(f"{word} {aligner_phones(' '.join(read(words[word]).sentences))}")
    return "\n".join([*lines, ""])


def bigram_model(sentences: Sequence[Sequence[str]]) -> str:
    """Back-off bigram model of ``sentences`` (lists of words) in ARPA format, with absolute discounting."""
    followers: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for sentence in sentences:
        for word, follower in pairwise([START, *sentence, END]):
            followers[word][follower] += 1
    counts = Counter(follower for sentence in sentences for follower in (*sentence, END))
    total = sum(counts.values())
    unigrams, bigrams = [], []
    for word in (START, *sorted(counts)):
        seen = followers.get(word, Counter())
        back_off = 1.0
        if seen:
            left = DISCOUNT * len(seen) / seen.total()
            back_off = left / max(1e-6, 1.0 - sum(counts[follower] for follower in seen) / total)
        probability = math.log10(counts[word] / total) if word in counts else -99.0
        unigrams.append(f"{probability:.5f} {word} {math.log10(back_off):.5f}")
        for follower, count in sorted(seen.items()):
            bigrams.append(f"{math.log10((count - DISCOUNT) / seen.total()):.5f} {word} {follower}")
    head = ["\\data\\", f"ngram 1={len(unigrams)}", f"ngram 2={len(bigrams)}"]
    return "\n".join([*head, "", "\\1-grams:", *unigrams, "", "\\2-grams:", *bigrams, "", "\\end\\", ""])


def _required(package: str) -> ModuleType:
    with needing(PlainError, f"Measuring intelligibility needs {package}", how_to_add("judge")):
        return __import__(package)
