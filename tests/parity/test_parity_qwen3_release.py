"""Qwen3-TTS's prompts of every mode, and two tiny releases from folder to sound, against the official package."""

import itertools
from pathlib import Path

import numpy as np
import pytest
import torch

from paretone.errors import SettingError, TextError
from paretone.files import wav
from paretone.models import load_model
from paretone.models.base import Voice
from paretone.models.catalogue import entry, recognised, voices
from paretone.models.qwen3_tts.adapter import QwenSpeech
from paretone.models.qwen3_tts.prompts import Marks, VoiceOfPrompt, prompt_of
from paretone.models.qwen3_tts.speaker_encoder import SAMPLE_RATE
from paretone.models.qwen3_tts.talker import Tables, Talker, TalkerConfig
from paretone.setting.setting import Setting
from paretone.speaking import scripted, synthesise
from tests.parity.fixtures import Fixture, assert_close, assert_near, cases, qwen3_fixtures

EMBEDDED = 1e-5
PROMPTS = qwen3_fixtures("prompts")


def tables_of(fixture: Fixture) -> Tables:
    """Only the tables and the projection that prompts need are the fixture's."""
    talker = Talker(TalkerConfig.read(fixture.description["config"]["talker_config"]))
    missing, unexpected = talker.load_state_dict(fixture.part("talker."), strict=False)
    assert not unexpected and missing
    return talker.eval().requires_grad_(False).tables()


@pytest.mark.parametrize(("fixture", "case"), cases(PROMPTS, lambda one: one.description["cases"]))
def test_parity_qwen3_prompts(fixture: Fixture, case: str) -> None:
    said, marks = fixture.description["cases"][case], Marks.read(fixture.description["config"])

    def ids(name: str) -> list[int]:
        return fixture[f"{case}.{name}"].tolist() if f"{case}.{name}" in fixture else []

    cloned, number = said["kind"] == "base", said["ref_codes"]
    embedding = fixture["speaker_embedding"] if cloned else None
    codes = None if number is None else fixture[f"ref_codes.{number}"].long().T
    voice = VoiceOfPrompt(said["speaker"] or "", embedding, codes, ids("ref_ids"))
    how = voice, said["language"], ids("instruct_ids"), not said["non_streaming_mode"]
    found = prompt_of(tables_of(fixture), marks, ids("text_ids"), *how)
    assert (len(found.embedded), len(found.trailing)) == (said["positions"], said["trailing"])
    assert_close(found.embedded, fixture[f"{case}.inputs_embeds"], EMBEDDED, "inputs_embeds")
    assert_close(found.trailing, fixture[f"{case}.trailing_text_hidden"], EMBEDDED, "trailing_text_hidden")
    other = prompt_of(tables_of(fixture), marks, [*ids("text_ids")[:3], 7, *ids("text_ids")[4:]], *how)
    assert torch.equal(other.embedded[: other.shared], found.embedded[: found.shared]) and found.shared > 0
    assert_close(found.padding, fixture["tts_pad_embed"], EMBEDDED, "tts_pad_embed")


@pytest.mark.parametrize("fixture", PROMPTS)
def test_what_cannot_be_prompted_is_said(fixture: Fixture) -> None:
    tables, marks = tables_of(fixture), Marks.read(fixture.description["config"])
    text = fixture["custom.text_ids"].tolist()
    with pytest.raises(SettingError, match="no speaker 'nobody'; it has aiden"):
        prompt_of(tables, marks, text, VoiceOfPrompt("nobody"))
    with pytest.raises(SettingError, match="no language 'latin'"):
        prompt_of(tables, marks, text, VoiceOfPrompt("ryan"), "latin")
    with pytest.raises(TextError, match="no text"):
        prompt_of(tables, marks, text[:3] + text[-5:], VoiceOfPrompt("ryan"))


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
