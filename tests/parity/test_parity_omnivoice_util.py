"""OmniVoice's rules about text, duration and sound, against what the official functions gave."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch

from paretone.errors import SettingError
from paretone.models.omnivoice import sound, text
from paretone.models.omnivoice.sound import WholePassages
from paretone.sampling.demasking_schedule import commit_counts, demasking_times
from tests.parity.fixtures import Fixture, assert_close, fixtures

RATE = 24000
utilities = pytest.mark.parametrize("fixture", fixtures("ar", lambda description: "combine_text" in description))


@utilities
def test_parity_omnivoice_util_durations(fixture: Fixture) -> None:
    for case in fixture.description["duration"]:
        assert text.weight(case["text"]) == pytest.approx(case["total_weight"]), case
        found = text.expected_frames(case["text"], case["ref_text"] or "", case["ref_tokens"] or 0, case["speed"])
        assert found == case["target_tokens"], case


@utilities
def test_parity_omnivoice_util_schedule(fixture: Fixture) -> None:
    for case in fixture.description["schedule"]:
        times = demasking_times(case["num_step"], case["t_shift"])
        assert times.tolist() == pytest.approx(case["timesteps"], abs=1e-9)
        assert list(commit_counts(8 * case["T"], case["num_step"], case["t_shift"])) == case["counts"], case["T"]


@utilities
def test_parity_omnivoice_util_languages(fixture: Fixture) -> None:
    for case in fixture.description["language"]:
        found, notes = text.language(case["given"] or "")
        assert found == case["resolved"], case
        asked = (case["given"] or "none").lower() != "none"
        assert bool(notes) == (asked and case["resolved"] is None), case


@utilities
def test_parity_omnivoice_util_descriptions_of_voices(fixture: Fixture) -> None:
    for case in fixture.description["instruct"]:
        if "error" in case:
            with pytest.raises(SettingError, match=r"\w{4,}"):
                text.instruct(case["given"], chinese=case["use_zh"])
        else:
            assert text.instruct(case["given"], chinese=case["use_zh"]) == case["ok"], case


@utilities
def test_parity_omnivoice_util_texts(fixture: Fixture) -> None:
    for case in fixture.description["combine_text"]:
        assert text.combined(case["text"], case["ref_text"] or "") == case["out"], case
    for case in fixture.description["add_punctuation"]:
        assert text.ended(case["text"]) == case["out"], case
    for case in fixture.description["nonverbal_split"]:
        assert text.segments(case["text"]) == case["segments"], case


@utilities
def test_parity_omnivoice_util_chunks(fixture: Fixture) -> None:
    for case in fixture.description["chunk_text"]:
        assert text.chunks(case["text"], case["chunk_len"], case["min_chunk_len"]) == case["out"], case


def joined(samples: np.ndarray, level: float | None, *, cut: bool = False) -> np.ndarray:
    """A single passage after joining; ``level`` is that of the reference."""
    joiner = WholePassages(RATE, level, cut=cut)
    joiner.begin()
    return np.concatenate([joiner.push(samples), joiner.finish()])


def audio_of(fixture: Fixture) -> np.ndarray:
    return fixture["audio"][0].numpy()


@utilities
def test_parity_omnivoice_util_silence(fixture: Fixture) -> None:
    names = [name for name in fixture.names if name.startswith("remove_silence_")]
    assert names
    for name in names:
        found, _ = sound.without_silence(audio_of(fixture), RATE, *map(int, name.split("_")[2:]))
        assert np.array_equal(found, fixture[name][0].numpy()), name


@utilities
def test_parity_omnivoice_util_long_references(fixture: Fixture) -> None:
    expected = fixture.description["trim_long_audio"]
    speech = np.resize(audio_of(fixture), expected["in_samples"])  # repeated as often as it takes
    assert sound.cut_of(speech, RATE) * RATE == expected["out_samples"]


@utilities
def test_parity_omnivoice_util_fades(fixture: Fixture) -> None:
    found = joined(audio_of(fixture), sound.QUIET)
    assert_close(torch.from_numpy(found), fixture["fade_pad_default"][0], 1e-6, "faded and padded speech")
    given, expected = fixture["short"][0], fixture["fade_pad_short"][0]
    pad = (len(expected) - len(given)) // 2
    assert not expected[:pad].any() and not expected[-pad:].any()
    short = sound.fade_edges(given.numpy(), int(sound.FADE_SECONDS * RATE))
    assert_close(torch.from_numpy(short), expected[pad:-pad], 1e-6, "faded short speech")


@utilities
@pytest.mark.parametrize("kind", ["none", "low", "high"])
def test_parity_omnivoice_util_post_processing(fixture: Fixture, kind: str) -> None:
    low, high = map(float, re.search(r"ref_rms None / ([\d.]+) / ([\d.]+)", fixture.description["audio_note"]).groups())
    found = joined(audio_of(fixture), {"none": None, "low": low, "high": high}[kind], cut=True)
    assert_close(torch.from_numpy(found), fixture[f"post_{kind}"][0], 1e-6, "post-processed speech")
