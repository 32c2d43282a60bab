"""F5's front end against the official code: tokens, ids, chunks, time grids, and the bookkeeping of long texts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from paretone.audio.cross_fade import CrossFader
from paretone.front_end.pronunciations import HowToRead
from paretone.models.base import Voice
from paretone.models.f5.config import HOP
from paretone.models.f5.front_end import CharacterFrontEnd, Prompt, PromptLevel, total_frames
from paretone.models.f5.text import Vocabulary, encode, maximum_bytes, pinyin_tokens, spaced_transcript, split
from paretone.sampling.flow import sampling_grid
from tests.parity.fixtures import Fixture, assert_close, fixtures

LEVEL = 1e-7
OFFICIAL_DEFAULTS = {"speed": 1.0, "fix_duration": None, "cross_fade_duration": 0.15}


def is_text(description: dict) -> bool:
    return all({"text", "tokens", "ids"} <= set(row) for row in description.get("rows", [{}]))


def has(entry: str) -> Callable[[dict], bool]:
    return lambda description: entry in description


def is_pipeline(description: dict) -> bool:
    return all("gen_text_batches" in one for one in description.get("scenarios", [{}]))


def vocabulary(fixture: Fixture) -> Vocabulary:
    """The vocabulary as far as the rows show it: missing tokens have the id of the space."""
    ids = {}
    for row in fixture.description["rows"]:
        for token, number in zip(row["tokens"], row["ids"], strict=True):
            if number != 0 or token == " ":
                assert ids.setdefault(token, number) == number
    return Vocabulary(ids)


ROWS = [
    pytest.param(one.values[0], index, id=f"{one.id}-{index}", marks=one.marks)
    for one in fixtures("dit", is_text)
    for index in range(len(one.values[0].description["rows"]))
]


@pytest.mark.parametrize(("fixture", "index"), ROWS)
def test_parity_tokens_and_ids(fixture: Fixture, index: int) -> None:
    row = fixture.description["rows"][index]
    encoded = vocabulary(fixture).encode(row["text"])
    assert list(encoded.tokens) == row["tokens"]
    assert list(encoded.ids) == row["ids"]
    if "byte_ids" in row:
        assert list(encode(row["text"], None, "byte").ids) == row["byte_ids"]


@pytest.mark.parametrize("fixture", fixtures("dit", lambda said: is_text(said) and "batch" in said))
def test_parity_batches(fixture: Fixture) -> None:
    """Upstream fills the rows of a batch up with −1; here every passage is a row by itself."""
    batch = fixture.description["batch"]
    known = vocabulary(fixture)
    for text, row in zip(batch["texts"], batch["ids"], strict=True):
        ids = list(known.encode(text).ids)
        assert ids + [-1] * (len(row) - len(ids)) == row


@pytest.mark.parametrize("fixture", fixtures("dit", has("chunk_text")))
def test_parity_chunks(fixture: Fixture) -> None:
    for case in fixture.description["chunk_text"]:
        assert split(case["text"], case["max_chars"]) == case["chunks"]


@pytest.mark.parametrize(("entry", "sway"), [("epss", 0.0), ("epss_sway_minus1", -1.0)])
@pytest.mark.parametrize("fixture", fixtures("dit", has("epss")))
def test_parity_time_grids(fixture: Fixture, entry: str, sway: float) -> None:
    if entry not in fixture.description:
        pytest.skip(f"{fixture.name} has no grids {entry}")
    for steps, grid in fixture.description[entry].items():
        assert np.array_equal(sampling_grid(int(steps), "epss", sway), np.array(grid, np.float32)), steps


SCENARIOS = [
    pytest.param(one.values[0], index, id=f"{one.id}-{scenario['name']}", marks=one.marks)
    for one in fixtures("dit", is_pipeline)
    for index, scenario in enumerate(one.values[0].description["scenarios"])
]


@pytest.mark.parametrize(("fixture", "index"), SCENARIOS)
def test_parity_long_text(fixture: Fixture, index: int) -> None:
    said = fixture.description["scenarios"][index]
    name = said["name"]
    options = OFFICIAL_DEFAULTS | said["kw"]
    unknown = set(options) - set(OFFICIAL_DEFAULTS)
    assert not unknown, f"the fixture's scenario has options that this test does not know: {unknown}"
    assert said["sr"] == 24000, "the fixtures leave resampling out"
    transcript = said["ref_text"]
    maximum = maximum_bytes(transcript, said["secs"], options["speed"])
    assert maximum == said["max_chars"]
    pieces = split(said["gen_text"], maximum)
    assert pieces == said["gen_text_batches"]
    voice = Voice("", "", "", transcript)
    mel = torch.zeros(1, 1, 1)
    whole_prompt = Prompt(voice, mel, 0, PromptLevel(1.0), torch.zeros(0), said["secs"])
    front_end = CharacterFrontEnd(None, "byte")
    read = front_end.passages(said["gen_text"], whole_prompt, HowToRead(options["speed"]))
    assert [passage.text for passage in read.passages] == pieces

    recording = fixture[f"{name}.audio_in"].mean(0, keepdim=True)  # The application reads all recordings as mono.
    level = PromptLevel.measure(recording)
    prompt = level.normalised(recording)
    transcript = spaced_transcript(transcript)
    assert len(pieces) == len(said["calls"])
    for piece, call in zip(pieces, said["calls"], strict=True):
        assert prompt.shape[-1] == call["cond_len"]
        assert PromptLevel.measure(prompt).level == pytest.approx(call["cond_rms"], abs=LEVEL)
        assert ["".join(pinyin_tokens(transcript + piece))] == call["text"]
        if not options["fix_duration"]:  # Paretone has no such option.
            frames = prompt.shape[-1] // HOP
            assert total_frames(frames, transcript, piece, options["speed"]) == call["duration"]

    waves = [fixture[f"{name}.vocoder_wave{number}"] for number in range(len(pieces))]
    fader = CrossFader.of_seconds(options["cross_fade_duration"], said["sr"])
    parts = [fader.push(level.restored(wave)[0].numpy()) for wave in waves]
    whole = torch.from_numpy(np.concatenate([*parts, fader.finish()]))
    assert len(whole) == said["final_len"]
    assert_close(whole, fixture[f"{name}.final_wave"], 0.0, "final_wave")
