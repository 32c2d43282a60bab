"""Qwen3-TTS from a release's folder to sound against the package's own calls, on two tiny releases."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
import torch

from paretone.files import wav
from paretone.models import load_model
from paretone.models.base import Voice
from paretone.models.catalogue import entry, recognised, voices
from paretone.models.qwen3_tts.adapter import QwenSpeech
from paretone.models.qwen3_tts.speaker_encoder import SAMPLE_RATE
from paretone.setting.setting import Setting
from paretone.speaking import scripted, synthesise
from tests.parity.fixtures import Fixture, assert_near, cases, qwen3_fixtures

RELEASES = qwen3_fixtures("release")
TEXTS = {"custom_auto": "short"}
AUTOMATIC = ("clone_x_vector", "custom_auto")
"""Cases without a language."""
SPEAKERS = {"custom": "ryan", "custom_auto": "dylan"}


@pytest.mark.parametrize(("fixture", "case"), cases(RELEASES, lambda one: one.description["cases"]))
def test_parity_qwen3_from_text_to_sound(fixture: Fixture, case: str, tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    said, texts = fixture.description["cases"][case], fixture.description["texts"]
    folder = Path(fixture.folder) / said["folder"]
    kind = recognised(folder)
    assert kind is not None and kind.title.endswith("Base" if "clone" in case else "CustomVoice")
    model = load_model(kind.id, folder=str(folder), device="cpu")
    assert isinstance(model, QwenSpeech)
    options = {
        "temperature": 0.0,
        "inner_temperature": 0.0,
        "repetition_penalty": fixture.description["settings"]["repetition_penalty"],
        "language": "auto" if case in AUTOMATIC else "english",
    }
    if "clone" in case:
        path = tmp_path / "reference.wav"
        path.write_bytes(wav(fixture["ref.wav"].numpy(), SAMPLE_RATE))
        voice = Voice("own", "Own", str(path), texts["ref"] if case == "clone_icl" else "")
        options["continue"] = case == "clone_icl"
    else:
        voice = next(one for one in voices(kind.id, str(folder)) if one.id == SPEAKERS[case])
        options["instruction"] = texts["instruct"] if case == "custom" else ""
    setting = Setting(kind.id, entry(kind.id).options_with(**options))
    text = texts[TEXTS.get(case, "plain")]
    script = scripted(model, text, voice, setting)
    ((_, decoding),) = model.decodings(script)
    frames = [cycle.frames for cycle in itertools.islice(decoding, said["frames"])]
    assert torch.equal(torch.tensor(frames), fixture[f"{case}.codes"].long())
    # Speech of random weights does not end; the decoder looks at nothing that follows.
    found = torch.from_numpy(np.array(synthesise(model, text, voice, setting).samples[: said["samples"]]))
    assert_near(found, fixture[f"{case}.wav"], "speech")
