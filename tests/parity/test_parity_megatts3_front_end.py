"""MegaTTS 3 outside its networks, against the official code: tables, tokens, splitting, durations, cross-fade."""

from __future__ import annotations

import re

import numpy as np
import pytest

from paretone.models.f5.text import split
from paretone.models.megatts3.adapter import segment_fader
from paretone.models.megatts3.aligner import END, START, read_alignment
from paretone.models.megatts3.duration_model import FRAMES_MULTIPLE
from paretone.models.megatts3.front_end import ENGLISH_BYTES, split_chinese
from paretone.models.megatts3.phones import (
    PHONES,
    TONES,
    durations_of_phones,
    frames_of_phones,
    joined,
    phone_number,
    separated,
)
from tests.parity.fixtures import Fixture, fixtures

SEGMENTS = re.compile(
    r"(?P<count>\d+) segments sin\(n\*(?P<step>[\d.]+)\*\(i\+1\)\), "
    r"lengths (?P<first>\d+)\+(?P<more>\d+)i, sr (?P<rate>\d+)"
)
"""The rule of the fixture's cross-fade, which it writes down in words only."""


def is_front_end(description: dict) -> bool:
    return "phone_vocab_size" in description


front_end = pytest.mark.parametrize("fixture", fixtures("dit", is_front_end))


@front_end
def test_parity_phones_and_tones(fixture: Fixture) -> None:
    said = fixture.description
    assert (len(PHONES), len(TONES)) == (said["phone_vocab_size"], said["tone_vocab_size"])
    assert {name: phone_number(name) for name in said["phone_id_examples"]} == said["phone_id_examples"]
    assert {str(number): name for number, name in enumerate(TONES)} == said["tone_id_to_token"]


@front_end
def test_parity_tokens_of_phones(fixture: Fixture) -> None:
    said = fixture.description["split_ph"]
    pairs = [separated(token) for token in said["in"]]
    assert [list(part) for part in zip(*pairs, strict=True)] == [said["ph"], said["tone"]]
    expected = fixture.description["map_phone_to_tokendict_back"]
    assert [START, *(joined(*pair) for pair in pairs), END] == expected


@front_end
def test_parity_tokens_of_the_aligner(fixture: Fixture) -> None:
    said = fixture.description["split_ph_timestamp"]
    alignment = read_alignment(said["in"], said["last"])
    assert (list(alignment.phones), list(alignment.tones)) == (said["ph"], said["tone"])
    assert list(alignment.durations) == said["dur"]


@front_end
def test_parity_splitting(fixture: Fixture) -> None:
    said = fixture.description
    assert split(said["texts"]["en"], ENGLISH_BYTES) == said["chunk_english_130"]
    assert split_chinese(said["texts"]["zh"], 60) == said["chunk_chinesev2_60"]


@front_end
def test_parity_durations_and_frames(fixture: Fixture) -> None:
    said = fixture.description
    rows, backward = said["length_regulator"], said["mel2token_to_dur"]
    # Frames were cut, as upstream cuts them to a multiple, before they were counted.
    counted = max(map(sum, backward))
    assert counted <= len(rows["mel2ph"][0])
    for durations, frames, back in zip(rows["dur"], rows["mel2ph"], backward, strict=True):
        found = frames_of_phones(durations)
        # Officially a batch, where shorter rows are filled up with 0.
        assert np.pad(found, (0, len(frames) - len(found))).tolist() == frames
        assert durations_of_phones(np.array(frames[:counted]), len(durations)).tolist() == back


@front_end
def test_parity_cross_fade(fixture: Fixture) -> None:
    said = fixture.description["combine"]
    rule = SEGMENTS.fullmatch(said["rule"])
    assert rule is not None, said["rule"]
    count, first, more, rate = (int(rule[name]) for name in ("count", "first", "more", "rate"))
    fader = segment_fader(rate)
    pushed = [
        fader.push(np.sin(np.arange(first + more * i) * float(rule["step"]) * (i + 1)).astype(np.float32))
        for i in range(count)
    ]
    joined_up = np.concatenate([*pushed, fader.finish()])
    assert len(joined_up) == said["out_len"]
    assert np.abs(joined_up[::97] - said["sample_every_97"]).max() < 1e-6


def test_parity_multiple_of_frames() -> None:
    assert FRAMES_MULTIPLE == 8
