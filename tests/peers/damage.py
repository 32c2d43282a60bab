"""Damage to speech at three strengths, one function per fault, with which the checks are measured."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate
from typing import Any

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
    """What is done to the speech."""
    strengths: tuple[Any, Any, Any]
    do: Callable[[Speech, Any, Draw], Damaged]
    """Called with the speech, a strength and a source of chance."""


def _changed(speech: Speech, samples: np.ndarray, **more: Any) -> Speech:
    return replace(speech, samples=np.asarray(samples, np.float32), **more)


def _loud_place(speech: Speech, draw: Draw) -> int:
    """A sample within loud speech, at least 0.3 s from its ends."""
    start, end = speech.span
    # Loud below 3 kHz: in a vowel, not in a sibilant.
    low = Speech(np.repeat(speech.narrow[0], max(1, round(speech.rate / PITCH_RATE))), speech.rate).levels
    places = np.flatnonzero(low > low.max() - 12)
    inside = places[(places > (start + 0.3) * 100) & (places < (end - 0.3) * 100)]
    chosen = draw.choice(inside if len(inside) else places)
    return round((chosen + 0.5) * speech.rate / 100)


def _scale(speech: Speech, decibels: float = 0.0) -> float:
    """Amplitude of the loud parts, plus ``decibels``."""
    return float(10 ** ((speech.loud + decibels) / 20))


def _replaced(speech: Speech, count: int, value: float, draw: Draw, at_seam: bool = False) -> Speech:
    """``count`` samples from a loud place set to ``value``; takes of one passage get a seam there."""
    samples, place = speech.sound.copy(), _loud_place(speech, draw)
    samples[place : place + count] = value
    return _changed(speech, samples, seams=(*speech.seams, *[place / speech.rate] * at_seam))


def clipped(speech: Speech, decibels: float, draw: Draw) -> Damaged:
    gain = 10 ** (decibels / 20) / max(1e-6, float(np.abs(speech.sound).max()))
    return _changed(speech, (speech.sound * gain).clip(-1, 1))


def jumped(speech: Speech, decibels: float, draw: Draw) -> Damaged:
    start, end = speech.span
    if end - start < 2.4:
        return None
    pauses = [(a + b) / 200 for a, b in speech.pauses(0.05)]
    inside = [one for one in (*speech.seams, *pauses) if start + 1.1 < one < end - 1.1]
    at = float(draw.choice(inside)) if inside else float(draw.uniform(start + 1.1, end - 1.1))
    samples, place = speech.sound.copy(), round(at * speech.rate)
    samples[slice(place, None) if draw.random() < 0.5 else slice(place)] /= 10 ** (decibels / 20)
    return _changed(speech, samples)


def clicked(speech: Speech, height: float, draw: Draw) -> Damaged:
    samples, place = speech.sound.copy(), _loud_place(speech, draw)
    samples[place : place + 2] += height * _scale(speech) * draw.choice([-1, 1])
    return _changed(speech, samples, seams=(*speech.seams, place / speech.rate))


def burst(speech: Speech, given: tuple[float, float], draw: Draw) -> Damaged:
    seconds, level = given
    noise = draw.standard_normal(round(seconds * speech.rate)) * _scale(speech, level)
    end = round(speech.span[1] * speech.rate)
    tail = np.zeros(round(draw.uniform(0.02, 0.2) * speech.rate))
    return _changed(speech, np.concatenate([speech.sound[:end], tail, noise, np.zeros(round(0.05 * speech.rate))]))


def cut(speech: Speech, decibels: float, draw: Draw) -> Damaged:
    """Cut in the last sounds that are at most ``decibels`` below the loud parts."""
    places = np.flatnonzero(speech.levels > speech.loud - decibels)
    last = places[places < len(speech.levels) - 5]
    return _changed(speech, speech.sound[: round((last[-1] + 1) * speech.rate / 100)]) if len(last) else None


def looped(speech: Speech, seconds: float, draw: Draw) -> Damaged:
    start, end = speech.span
    if end - start < seconds + 0.3:
        return None
    place = round(draw.uniform(start + 0.1, end - seconds - 0.1) * speech.rate)
    until = place + round(seconds * speech.rate)
    return _changed(speech, np.concatenate([speech.sound[:until], speech.sound[place:]]))


def hummed(speech: Speech, decibels: float, draw: Draw) -> Damaged:
    hertz, times = draw.choice([50, 60]), np.arange(len(speech.sound)) / speech.rate
    tone = sum(np.sin(2 * np.pi * hertz * number * times) / number for number in (1, 2, 3))
    return _changed(speech, speech.sound + tone * _scale(speech, decibels))


def narrowed(speech: Speech, rate: int, draw: Draw) -> Damaged:
    if speech.rate < 22000:
        return None
    return _changed(speech, resample(resample(speech.sound, speech.rate, rate), rate, speech.rate)[: len(speech.sound)])


def paced(speech: Speech, factor: float, draw: Draw) -> Damaged:
    words = speech.text.split()
    if len(words) < 8:
        return None
    count = round(len(words) * factor) if draw.random() < 0.5 else max(4, round(len(words) / factor))
    return replace(speech, text=" ".join((words * 4)[:count]))


def resampled(speech: Speech, factor: float, draw: Draw) -> Damaged:
    moved = resample(speech.sound, round(24000 * factor ** draw.choice([-1, 1])), 24000)
    return _changed(speech, moved, seams=())


# --- Words ------------------------------------------------------------------------------------------------------------
def _stretch(words: Sequence[tuple[str, str]], least: int, draw: Draw) -> tuple[int, int] | None:
    """First and last word of a stretch of ``least`` to ``least + 2`` phones."""
    counts = [len(phones.split()) for _, phones in words]
    found = []
    for first in range(1, len(words) - 1):
        for width, phones in enumerate(accumulate(counts[first:-1]), 1):
            if phones >= least:
                found += [(first, first + width)] if phones <= least + 2 else []
                break
    return found[draw.integers(len(found))] if found else None


OTHER = (
    "yellow engineers brought a huge basket of potatoes under seven chimneys while purple dragons juggle vivid "
    "questions about geography and fog might chew eleven giraffes for a joyful thirsty fisherman"
)
"""Words that no sentence has."""


def without_words(speech: Speech, phones: int, draw: Draw) -> Damaged:
    """A text with words that are not spoken."""
    words, others = speech.text.split(), [one for one in spoken_words(OTHER) if one[0].isalpha()]
    stretch = _stretch(others, phones, draw)
    if stretch is None or len(words) < 4:
        return None
    place = int(draw.integers(1, len(words) - 1))
    put = [word for word, _ in others[slice(*stretch)]]
    return replace(speech, text=" ".join([*words[:place], *put, *words[place:]]))


def with_words(speech: Speech, phones: int, draw: Draw) -> Damaged:
    """A text that lacks words that are spoken."""
    written, words = speech.text.split(), spoken_words(speech.text)
    stretch = _stretch(words, phones, draw) if len(written) == len(words) else None
    if stretch is None:
        return None
    return replace(speech, text=" ".join([*written[: stretch[0]], *written[stretch[1] :]]))


listened = lru_cache(maxsize=64)(listen)
"""Clean speech is damaged at every strength."""


def with_words_twice(speech: Speech, phones: int, draw: Draw) -> Damaged:
    words = spoken_words(speech.text)
    heard = {one.word: one for one in listened(speech).heard if one.word >= 0}
    stretch = _stretch(words, phones, draw)
    if stretch is None or any(word not in heard for word in range(*stretch)):
        return None
    start, end = (round(at * speech.rate) for at in (heard[stretch[0]].start, heard[stretch[1] - 1].end))
    return _changed(speech, np.concatenate([speech.sound[:end], speech.sound[start:]]), seams=())


# --- Prompts ----------------------------------------------------------------------------------------------------------
def noisy(speech: Speech, decibels: float, draw: Draw) -> Damaged:
    """White or pink noise."""
    spectrum = np.fft.rfft(draw.standard_normal(len(speech.sound)))
    spectrum /= np.maximum(np.arange(len(spectrum)), 10) ** draw.choice([0.0, 0.5])
    noise = np.fft.irfft(spectrum, len(speech.sound))
    return _changed(speech, speech.sound + noise / noise.std() * _scale(speech, decibels))


def echoed(speech: Speech, seconds: float, draw: Draw) -> Damaged:
    """A room's response: the sound itself, and noise of the same energy that decays by 60 dB in ``seconds``."""
    count = round(seconds * speech.rate)
    room = draw.standard_normal(count) * 10 ** (-3 * np.linspace(0, 1, count))
    room[: speech.rate // 200] = 0
    room /= np.sqrt(np.sum(room**2))
    room[0] = 1
    size = len(speech.sound) + count
    return _changed(speech, np.fft.irfft(np.fft.rfft(speech.sound, size) * np.fft.rfft(room, size), size))


def partly_written(speech: Speech, share: float, draw: Draw) -> Damaged:
    written = speech.text.split()
    return replace(speech, text=" ".join(written[: round(share * len(written))]))


BOTH: tuple[Damage, ...] = (
    Damage("clipped", "dB over full scale, cut off", (3, 6, 12), clipped),
    Damage("hum", "dB: mains hum with two overtones", (-42, -34, -26), hummed),
    Damage(
        "offset",
        "of the level as the mean",
        (0.06, 0.15, 0.4),
        lambda speech, share, _: _changed(speech, speech.sound + share * _scale(speech)),
    ),
    Damage("bandwidth", "Hz, by which it is resampled", (18000, 16000, 8000), narrowed),
)
DAMAGES: tuple[Damage, ...] = (
    Damage("not-a-number", "samples", (1, 100, 5000), lambda one, count, draw: _replaced(one, count, np.nan, draw)),
    Damage(
        "silence",
        "s set to zero",
        (0.5, 1.0, 2.0),
        lambda one, seconds, draw: _replaced(one, round(seconds * one.rate), 0.0, draw),
    ),
    Damage("level-jump", "dB between two parts", (8, 14, 20), jumped),
    Damage("click", "times the level, two samples at a seam in a vowel", (0.7, 2.0, 4.0), clicked),
    Damage(
        "gap",
        "s of zeros at a seam in a vowel",
        (0.005, 0.02, 0.06),
        lambda one, seconds, draw: _replaced(one, round(seconds * one.rate), 0.0, draw, at_seam=True),
    ),
    Damage("burst", "s and dB of white noise", ((0.08, -26), (0.2, -18), (0.5, -10)), burst),
    Damage("cut", "dB below the loud parts, where it is cut", (18, 12, 6), cut),
    Damage("loop", "s a second time", (0.503, 1.007, 1.511), looped),
    *BOTH,
    Damage("pace", "times as many words as spoken, or as few", (1.5, 2.5, 4.0), paced),
    Damage("shifted", "times the rate, or the other way round", (24 / 22.05, 22.05 / 16, 1.5), resampled),
    Damage("missing", "phones or more that are not spoken", (3, 6, 12), without_words),
    Damage("repeated", "phones or more twice", (3, 6, 12), with_words_twice),
    Damage("added", "phones or more that are not in the text", (3, 6, 12), with_words),
)
PROMPT_DAMAGES: tuple[Damage, ...] = (
    Damage(
        "length",
        "s, cut or repeated",
        ((1.5, 25), (1.0, 45), (0.6, 60)),
        lambda one, seconds, draw: _changed(one, np.resize(one.sound, round(draw.choice(seconds) * one.rate))),
    ),
    Damage(
        "late",
        "s of silence before it",
        (0.4, 1.0, 2.0),
        lambda one, seconds, _: _changed(one, np.pad(one.sound, (round(seconds * one.rate), 0))),
    ),
    Damage("noise", "dB of white or pink noise", (-30, -20, -10), noisy),
    Damage("reverberation", "s of a room's decay", (0.3, 0.6, 1.2), echoed),
    Damage("transcript", "of its words written", (0.8, 0.5, 0.3), partly_written),
    *BOTH,
)
