"""Damage to speech at three strengths, one function per fault: what the checks of takes are measured with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np

from paretone.audio.resampling import resample
from paretone.checks.speech import PITCH_RATE, Speech, spoken_words
from paretone.checks.words import listen

STRENGTHS = ("mild", "middle", "strong")
Draw = np.random.Generator
Damaged = Speech | None
"""``None``: this speech cannot be damaged so, for example for want of a long word."""


@dataclass(frozen=True)
class Damage:
    fault: str
    title: str
    """What is done to the speech, with its three strengths."""
    do: Callable[[Speech, int, Draw], Damaged]


def _changed(speech: Speech, samples: np.ndarray, **more: object) -> Speech:
    return replace(speech, samples=np.asarray(samples, np.float32), **more)  # type: ignore[arg-type]


def _loud_place(speech: Speech, draw: Draw) -> int:
    """A sample within loud speech, at least 0.3 s from its ends."""
    start, end = speech.span
    # Loud below 3 kHz: in a vowel, not in a sibilant.
    low = Speech(np.repeat(speech.narrow, max(1, round(speech.rate / PITCH_RATE))), speech.rate).levels
    places = np.flatnonzero(low > low.max() - 12)
    inside = places[(places > (start + 0.3) * 100) & (places < (end - 0.3) * 100)]
    chosen = draw.choice(inside if len(inside) else places)
    return round((chosen + 0.5) * speech.rate / 100)


def _scale(speech: Speech) -> float:
    return float(10 ** (speech.loud / 20))


def numbers(speech: Speech, strength: int, draw: Draw) -> Damaged:
    samples, place = speech.sound.copy(), _loud_place(speech, draw)
    samples[place : place + (1, 100, 5000)[strength]] = np.nan
    return _changed(speech, samples)


def silenced(speech: Speech, strength: int, draw: Draw) -> Damaged:
    samples, place = speech.sound.copy(), _loud_place(speech, draw)
    samples[place : place + round((0.5, 1.0, 2.0)[strength] * speech.rate)] = 0
    return _changed(speech, samples)


def clipped(speech: Speech, strength: int, draw: Draw) -> Damaged:
    gain = 10 ** ((3, 6, 12)[strength] / 20) / max(1e-6, float(np.abs(speech.sound).max()))
    return _changed(speech, (speech.sound * gain).clip(-1, 1))


def jumped(speech: Speech, strength: int, draw: Draw) -> Damaged:
    start, end = speech.span
    if end - start < 2.4:
        return None
    pauses = [(a + b) / 200 for a, b in speech.pauses(0.05)]
    inside = [one for one in (*speech.seams, *pauses) if start + 1.1 < one < end - 1.1]
    at = float(draw.choice(inside)) if inside else float(draw.uniform(start + 1.1, end - 1.1))
    samples = speech.sound.copy()
    gain = 10 ** ((8, 14, 20)[strength] / 20)
    place = round(at * speech.rate)
    if draw.random() < 0.5:
        samples[place:] /= gain
    else:
        samples[:place] /= gain
    return _changed(speech, samples)


def _seam(speech: Speech, draw: Draw) -> tuple[int, Speech]:
    """A sample at a seam in speech; takes of one passage get one there."""
    place = _loud_place(speech, draw)
    return place, replace(speech, seams=(*speech.seams, place / speech.rate))


def clicked(speech: Speech, strength: int, draw: Draw) -> Damaged:
    place, seamed = _seam(speech, draw)
    samples = speech.sound.copy()
    samples[place : place + 2] += (0.7, 2.0, 4.0)[strength] * _scale(speech) * draw.choice([-1, 1])
    return _changed(seamed, samples)


def gapped(speech: Speech, strength: int, draw: Draw) -> Damaged:
    place, seamed = _seam(speech, draw)
    samples = speech.sound.copy()
    samples[place : place + round((0.005, 0.02, 0.06)[strength] * speech.rate)] = 0
    return _changed(seamed, samples)


def burst(speech: Speech, strength: int, draw: Draw) -> Damaged:
    seconds, level = ((0.08, -26), (0.2, -18), (0.5, -10))[strength]
    noise = draw.standard_normal(round(seconds * speech.rate)) * _scale(speech) * 10 ** (level / 20)
    end = round(speech.span[1] * speech.rate)
    tail = np.zeros(round(draw.uniform(0.02, 0.2) * speech.rate))
    return _changed(speech, np.concatenate([speech.sound[:end], tail, noise, np.zeros(round(0.05 * speech.rate))]))


def cut(speech: Speech, strength: int, draw: Draw) -> Damaged:
    """Cut in the last loud sounds: 18, 12 or 6 dB below the loud parts or above."""
    places = np.flatnonzero(speech.levels > speech.loud - (18, 12, 6)[strength])
    last = places[places < len(speech.levels) - 5]
    return _changed(speech, speech.sound[: round((last[-1] + 1) * speech.rate / 100)]) if len(last) else None


def looped(speech: Speech, strength: int, draw: Draw) -> Damaged:
    seconds, (start, end) = (0.5, 1.0, 1.5)[strength], speech.span
    if end - start < seconds + 0.3:
        return None
    place = round(draw.uniform(start + 0.1, end - seconds - 0.1) * speech.rate)
    until = place + round(seconds * speech.rate)
    return _changed(speech, np.concatenate([speech.sound[:until], speech.sound[place:]]))


def hummed(speech: Speech, strength: int, draw: Draw) -> Damaged:
    hertz = draw.choice([50, 60])
    times = np.arange(len(speech.sound)) / speech.rate
    tone = sum(np.sin(2 * np.pi * hertz * number * times) / number for number in (1, 2, 3))
    return _changed(speech, speech.sound + tone * _scale(speech) * 10 ** ((-42, -34, -26)[strength] / 20))


def shifted_mean(speech: Speech, strength: int, draw: Draw) -> Damaged:
    return _changed(speech, speech.sound + (0.06, 0.15, 0.4)[strength] * _scale(speech))


def narrowed(speech: Speech, strength: int, draw: Draw) -> Damaged:
    rate = (18000, 16000, 8000)[strength]
    if speech.rate < 22000:
        return None
    return _changed(speech, resample(resample(speech.sound, speech.rate, rate), rate, speech.rate)[: len(speech.sound)])


def paced(speech: Speech, strength: int, draw: Draw) -> Damaged:
    """A text of more or fewer words than are spoken: 1.5, 2 or 3 times as many, or as few."""
    words, factor = speech.text.split(), (1.5, 2.5, 4.0)[strength]
    if len(words) < 8:
        return None
    count = round(len(words) * factor) if draw.random() < 0.5 else max(4, round(len(words) / factor))
    return replace(speech, text=" ".join((words * 4)[:count]))


def resampled(speech: Speech, strength: int, draw: Draw) -> Damaged:
    """A file that says another rate: 22.05 for 24 kHz, 16 for 22.05, 16 for 24, and the other way round."""
    factor = (24 / 22.05, 22.05 / 16, 1.5)[strength] ** draw.choice([-1, 1])
    moved = resample(speech.sound, round(24000 * factor), 24000)
    return replace(_changed(speech, moved), seams=())


PHONES = (3, 6, 12)
"""Least phones of the words that are left out, repeated or added."""


def _stretch(words: Sequence[tuple[str, str]], strength: int, draw: Draw) -> tuple[int, int] | None:
    """First and last word of a stretch of about as many phones as :data:`PHONES` says."""
    counts = [len(phones.split()) for _, phones in words]
    found = []
    for first in range(1, len(words) - 1):
        for width, phones in enumerate(accumulate(counts[first:-1]), 1):
            if phones >= PHONES[strength]:
                if phones <= PHONES[strength] + 2:
                    found.append((first, first + width))
                break
    return found[draw.integers(len(found))] if found else None


def without_words(speech: Speech, strength: int, draw: Draw) -> Damaged:
    """A text with words that are not spoken."""
    words = speech.text.split()
    others = [one for one in spoken_words(OTHER) if one[0].isalpha()]
    stretch = _stretch(others, strength, draw)
    if stretch is None or len(words) < 4:
        return None
    place = int(draw.integers(1, len(words) - 1))
    put = [word for word, _ in others[slice(*stretch)]]
    return replace(speech, text=" ".join([*words[:place], *put, *words[place:]]))


OTHER = (
    "yellow engineers brought a huge basket of potatoes under seven chimneys while purple dragons juggle vivid "
    "questions about geography and fog might chew eleven giraffes for a joyful thirsty fisherman"
)
"""Words that no sentence has."""


def with_words(speech: Speech, strength: int, draw: Draw) -> Damaged:
    """A text that lacks words that are spoken."""
    written, words = speech.text.split(), spoken_words(speech.text)
    if len(written) != len(words):
        return None
    stretch = _stretch(words, strength, draw)
    if stretch is None:
        return None
    return replace(speech, text=" ".join([*written[: stretch[0]], *written[stretch[1] :]]))


def with_words_twice(speech: Speech, strength: int, draw: Draw) -> Damaged:
    words = spoken_words(speech.text)
    heard = {one.word: one for one in listen(speech).heard if one.word >= 0}
    stretch = _stretch(words, strength, draw)
    if stretch is None or any(word not in heard for word in range(*stretch)):
        return None
    start, end = (round(at * speech.rate) for at in (heard[stretch[0]].start, heard[stretch[1] - 1].end))
    return _changed(speech, np.concatenate([speech.sound[:end], speech.sound[start:]]), seams=())


DAMAGES: tuple[Damage, ...] = (
    Damage("not-a-number", "1, 100 or 5,000 samples that are not numbers", numbers),
    Damage("silence", "0.5, 1 or 2 s set to zero", silenced),
    Damage("clipped", "3, 6 or 12 dB over full scale, cut off", clipped),
    Damage("level-jump", "8, 14 or 20 dB between two parts", jumped),
    Damage("click", "two samples off by 0.7, 2 or 4 times the speech's level, at a seam in a vowel", clicked),
    Damage("gap", "5, 20 or 60 ms of zeros at a seam in a vowel", gapped),
    Damage("burst", "white noise: 80 ms at −26 dB, 200 ms at −18 dB, 500 ms at −10 dB", burst),
    Damage("cut", "cut where the speech is 18, 12 or 6 dB below its loud parts", cut),
    Damage("loop", "0.5, 1 or 1.5 s a second time", looped),
    Damage("hum", "mains hum with two overtones at −42, −34 or −26 dB", hummed),
    Damage("offset", "a mean of 6, 15 or 40 % of the level", shifted_mean),
    Damage("bandwidth", "resampled by way of 18, 16 or 8 kHz", narrowed),
    Damage("pace", "1.5, 2.5 or 4 times as many words as spoken, or as few", paced),
    Damage("shifted", "24 kHz played at 22.05, 22.05 at 16, 24 at 16, or the other way round", resampled),
    Damage("missing", "words of 3, 6 or 12 phones that are not spoken", without_words),
    Damage("repeated", "words of 3, 6 or 12 phones twice", with_words_twice),
    Damage("added", "words of 3, 6 or 12 phones that are not in the text", with_words),
)
