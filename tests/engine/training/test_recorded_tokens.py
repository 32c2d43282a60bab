"""Recordings of a manifest become phones and tokens, as many of each."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from paretone.models.catalogue import entry
from paretone.models.load_request import LoadRequest
from paretone.models.minis.frames import token_phones
from paretone.models.minis.lm_mini.checkpoint import LmMiniFolder
from paretone.models.minis.lm_mini.parts import LmMiniParts, read_parts
from paretone.models.minis.natural.said import NaturalVoice
from paretone.observer import Observer
from paretone.training.spoken_tokens import record_tokens
from tests.engine.small_language import CODES, write_model
from tests.engine.training.toy_corpus import toy_corpus
from tests.engine.training.toy_model import toy_manifest


def parts_of(folder: LmMiniFolder) -> LmMiniParts:
    nothing = Observer()
    request = LoadRequest(entry("lm-mini"), folder.root, "", torch.device("cpu"), nothing.status, nothing.check)
    return read_parts(request, folder)


def test_phones_and_tokens_stand_side_by_side(tmp_path: Path) -> None:
    folder = LmMiniFolder(write_model(tmp_path / "model"))
    training, held_out = record_tokens(toy_manifest(tmp_path, clips=4), parts_of(folder), tmp_path / "speech-of-it")
    assert (len(training), len(held_out)) == (4, 4)
    for one in (*training, *held_out):
        assert len(one.phones) == len(one.codes) > 25
        assert one.codes.min() >= 0 and one.codes.max() < CODES
    clip = toy_corpus(4).training[0]
    assert training[0].voice == clip.voice
    names = [folder.layout().vocabulary.phones[one] for one in training[0].phones]
    assert set(names) == {phone for phone, _, _ in clip.phones}


def test_tokens_are_those_of_the_models_own_tokenizer(tmp_path: Path) -> None:
    folder = LmMiniFolder(write_model(tmp_path / "model"))
    parts, clips = parts_of(folder), toy_corpus(4)
    training, _ = record_tokens(toy_manifest(tmp_path, clips=4), parts, tmp_path / "speech-of-it")
    frames = {
        id(clip): parts.coding.frames(torch.from_numpy(clip.mel.astype(np.float32))[None])
        for clip in (*clips.training, *clips.held_out)
    }
    first = clips.training[0]
    own = [frames[id(clip)] for clip in (*clips.training, *clips.held_out) if clip.voice == first.voice]
    expected = parts.coding.codes(frames[id(first)], NaturalVoice.of(torch.cat(own))).numpy()
    # Written as FLAC and read again, a frame may just fall on the other side of a level.
    assert np.mean(training[0].codes == expected) > 0.8
    assert len(token_phones(np.zeros(61, np.int64), 2)) == 30
