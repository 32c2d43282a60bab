"""The sound of the bundled models ends with its text: no burst in the silence after it, no second word, no word cut.

Each fault that is listed in short was heard: with canvases that end within a frame, at a pace that the networks never
heard, after a language model that did not stop. Thorough tests speak 200 takes a model, and letters and words by seed.
"""

import functools
import itertools
import string
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from paretone.audio.cross_fade import DECAY, RELEASE
from paretone.front_end.phonemiser import default_phonemiser
from paretone.front_end.phones import last_sound
from paretone.front_end.pronunciations import HowToRead
from paretone.front_end.reading import SHORTEST_SILENCE, NaturalReader
from paretone.measure.intelligibility import Judge, words_of
from paretone.models import load_model
from paretone.models.base import Synthesis
from paretone.models.catalogue import entry, voices
from paretone.setting.knobs import Values
from paretone.setting.setting import Setting, UsedTechnique
from paretone.speaking import synthesise
from tests.workload import only_in_full, workload

RATE = 24_000
LAST = round(0.06 * RATE)
"""Samples at the end of a take that are silent,"""
SILENT = -60.0
"""in dBFS."""
LATE_SECONDS, LATE = 0.15, -50.0
"""Nothing is louder than this later than so long after the last sound."""
FRAME = round(0.01 * RATE)
WORDS = ("Why?", "No.", "One.", "Bye.", "Stop!", "Cats.", "Yes", "Hello.")
SEEDS = 5
HEARD = {
    "omni-mini": (("Why?", 0, 0),),
    "lm-mini": (("Why?", 3, 3),),
    "f5-mini": (("Stop!", 1, 0),),
    "megatts3-mini": (("One.", 4, 0),),
}
"""Takes in short: word, place of the voice, seed."""
SPOKEN = "Why? No. One. Bye."
WAYS = (
    # Those that a fault was heard in, which run in short too.
    ("omni-mini", "Look, a cat.", 0, {"speed": 0.5}, ()),
    ("omni-mini", "Why?", 0, {}, ("blockwise",)),
    ("f5-mini", "No.", 5, {"speed": 2.0}, ()),
    ("omni-mini", "Look, a cat.", 0, {"speed": 2.0}, ()),
    ("omni-mini", SPOKEN, 0, {}, ()),
    ("omni-mini", "Stop!", 1, {"speed": 0.5}, ("blockwise",)),
    ("omni-mini", "Why?", 0, {"steps": 4, "guidance": 0.0}, ()),
    ("omni-mini", SPOKEN, 0, {"by_sentence": True}, ("blockwise",)),
    *(("omni-mini", "Cats.", 0, {}, (name,)) for name in ("fewer_steps", "guidance_stride", "frozen_prefix")),
    *(("lm-mini", "Why?", 3, {}, (name,)) for name in ("speculative", "spade")),
    *(("lm-mini", "No.", 5, {"speed": speed}, ()) for speed in (0.5, 2.0)),
    ("lm-mini", "Stop!", 0, {"temperature": 0.0}, ()),
    *((model, "No.", 5, {"speed": 0.5}, ()) for model in ("f5-mini", "megatts3-mini")),
    ("megatts3-mini", "No.", 5, {"speed": 2.0}, ()),
    *((model, "Stop!", 0, {}, ("average_velocity",)) for model in ("f5-mini", "megatts3-mini")),
    *((model, "Stop!", 0, {}, ("multistep",)) for model in ("f5-mini", "megatts3-mini")),
)
"""Model, text, seed, options and techniques."""
RELEASES = ("Stop it!", "She took the bath.", "We saw the judge.", "Four hours of steady work faced us.")
LETTERS = tuple(string.ascii_uppercase)
UNSTRESSED = str.maketrans("", "", "ˈˌ")


@functools.lru_cache(maxsize=len(HEARD))
def loaded(model: str) -> Any:
    return load_model(model, device="cpu")


@functools.lru_cache(maxsize=1)
def reader() -> NaturalReader:
    return NaturalReader()


@pytest.fixture(scope="module", autouse=True)
def unloaded() -> Iterator[None]:
    yield
    loaded.cache_clear()
    reader.cache_clear()


def spoken(model: str, text: str, who: int, seed: int, techniques: Sequence[str] = (), **options: object) -> Synthesis:
    chosen = Setting(model, entry(model).options_with(**options), seed=seed)
    for name in techniques:
        chosen = chosen.with_technique(UsedTechnique(name, Values()))
    return synthesise(loaded(model), text, voices(model)[who % len(voices(model))], chosen)


def silence_after(text: str, seed: int, **options: object) -> float:
    """Seconds from the end of the last sound of ``text`` to its end."""
    pieces, _ = reader().pieces(text, HowToRead.of({"speed": 1.0, **options}, seed))
    return pieces[-1].seconds - last_sound(pieces[-1].phones)


def level(samples: np.ndarray) -> float:
    """Root mean square in dBFS."""
    return 20 * float(np.log10(max(np.sqrt(np.mean(np.square(samples, dtype=np.float64))), 1e-9)))


def faults(take: Synthesis, silence: float) -> list[str]:
    """What is heard where nothing is said, ``silence`` seconds before the end."""
    found = []
    if (last := level(take.samples[-LAST:])) >= SILENT:
        found.append(f"ends at {last:.0f} dBFS")
    # A take can be shorter than its phones by less than a token.
    late = take.samples[len(take.samples) - round((silence - LATE_SECONDS) * RATE) :] if silence > LATE_SECONDS else []
    levels = [level(late[first : first + FRAME]) for first in range(0, len(late) - FRAME + 1, FRAME)]
    if levels and max(levels) >= LATE:
        found.append(f"{max(levels):.0f} dBFS after the last sound")
    return found


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("model", HEARD)
def test_a_short_text_ends_in_silence(model: str) -> None:
    takes = itertools.product(WORDS, range(len(voices(model))), range(SEEDS))
    wrong = {
        one: found
        for one in workload(tuple(takes), HEARD[model])
        if (found := faults(spoken(model, *one), silence_after(one[0], one[2])))
    }
    assert not wrong


@pytest.mark.parametrize(("model", "text", "seed", "options", "techniques"), workload(WAYS, WAYS[:1]))
def test_so_it_does_in_every_way(model: str, text: str, seed: int, options: dict, techniques: tuple[str, ...]) -> None:
    assert faults(spoken(model, text, seed, seed, techniques, **options), silence_after(text, seed, **options)) == []


@only_in_full("speech")
@pytest.mark.parametrize("techniques", [(), ("sentencewise",), ("blockwise",)])
def test_a_passage_ends_in_silence_where_another_follows(techniques: tuple[str, ...]) -> None:
    take = spoken("omni-mini", SPOKEN, 0, 0, techniques, by_sentence=True)
    pieces, _ = reader().pieces(SPOKEN, HowToRead(by_sentence=True, seed=0))
    starts = [passage.start for passage in take.trace.demasking.passages]
    assert len(starts) == len(pieces) == 4
    for piece, start, following in zip(pieces, starts, starts[1:], strict=False):
        silent = start + last_sound(piece.phones) + (RELEASE + DECAY) / RATE
        assert level(take.samples[round(silent * RATE) : round(following * RATE)]) < LATE


@pytest.mark.parametrize("speed", workload((1.0, 2.0), (2.0,)))
def test_a_last_sound_rings_on(speed: float) -> None:
    """What is faded out after it is too soft to be missed."""
    lm = loaded("lm-mini")
    for seed, text in enumerate(workload(RELEASES, RELEASES[:1])):
        take = spoken("lm-mini", text, seed, seed, speed=speed)
        prompt = lm.front_end.prompt(voices("lm-mini")[seed])
        whole = lm.decoder(prompt, 0, Values()).whole(take.trace.decoding.tokens).samples
        assert level(whole) > -30
        assert np.abs(whole - take.samples).max() < 10 ** (SILENT / 20)


@pytest.mark.timeout(3600)
def test_the_language_model_ends_where_its_text_does() -> None:
    """Every letter and every word has the tokens of its phones."""
    texts = workload((*LETTERS, *WORDS), ("Why?",))
    seeds = workload(range(20), range(3, 4))
    once = takes = 0
    for text in texts:
        judge = Judge([text, f"{text} {text}"])
        for place, seed in itertools.product(workload(range(5), range(3, 4)), seeds):
            take = spoken("lm-mini", text, place, seed)
            (piece, *_), _ = reader().pieces(text, HowToRead(seed=seed))
            assert len(take.trace.decoding.tokens) == piece.latent_frames // 2
            assert take.trace.decoding.run_away == (False,) and not take.notes
            assert faults(take, silence_after(text, seed)) == []
            assert level(take.samples) > -40, "it is heard; the softest F has -37 dB"
            takes += 1
            once += judge.hear(take.samples, RATE).split() == words_of(text)
    # The judge takes a breath for a letter now and then.
    assert once >= workload(0.9, 1) * takes


@pytest.mark.parametrize("letter", workload(LETTERS, ("A", "I", "W")))
def test_a_letter_is_read_as_its_name(letter: str) -> None:
    (alone,), (ended,) = (default_phonemiser()(text).sentences for text in (letter, f"{letter}."))
    # The letter I is the word, which has less stress.
    assert alone.translate(UNSTRESSED) == ended.translate(UNSTRESSED).rstrip(".")
    assert set(alone) & set("ˈˌ")


@pytest.mark.parametrize("speed", [1.0, 2.0, 4.0])
def test_the_silence_after_a_text_is_never_shorter(speed: float) -> None:
    for text, seed in itertools.product(("No.", "Stop!", "Yes"), range(4)):
        assert silence_after(text, seed, speed=speed) >= SHORTEST_SILENCE - 1e-3
    assert (RELEASE + DECAY) / RATE < SHORTEST_SILENCE - LAST / RATE
