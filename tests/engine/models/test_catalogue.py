"""The catalogue's models, and the voices that they can use."""

from __future__ import annotations

from pathlib import Path

import pytest

from paretone.errors import SettingError
from paretone.models import catalogue
from paretone.models.base import FLOW
from paretone.models.catalogue import MODELS, CatalogueEntry, entry, voice, voice_problem, voices
from paretone.models.loading import LOADERS
from paretone.models.shipped_voices import shipped_names
from paretone.setting.knobs import checked
from paretone.setting.plan import imported


@pytest.mark.parametrize("one", catalogue.MODELS, ids=lambda one: one.id)
def test_every_entry_can_be_loaded_and_its_own_defaults_are_allowed(one: CatalogueEntry) -> None:
    assert callable(imported(LOADERS[one.loader]))
    assert checked(one.options, one.options_with(), one.title) == one.options_with()
    if one.family == FLOW:
        assert {"steps", "spacing", "sway", "speed", "cross_fade"} <= {knob.name for knob in one.options}


def test_bundled_models_are_there() -> None:
    assert {one.id for one in catalogue.MODELS if one.bundled} == {"f5-mini", "lm-mini", "megatts3-mini", "omni-mini"}
    assert all(one.available for one in catalogue.MODELS if one.bundled)


def test_a_model_is_available_once_its_weights_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARETONE_DATA", str(tmp_path))
    model = entry("MegaTTS3")
    assert not model.available
    place = model.folder / "diffusion_transformer"
    place.mkdir(parents=True)
    (place / "config.yaml").write_text("win_size: 1200")
    assert not model.available
    (place / "model_only_last.ckpt").write_bytes(b"0")
    assert model.available


def test_shipped_voices_are_for_all_models_that_can_encode_them() -> None:
    for model in ("f5-mini", "E2TTS_Base", "megatts3-mini"):
        assert tuple(one.id for one in voices(model)) == shipped_names()
        assert voice("", model) == voice(voices(model)[0].id, model) == voices(model)[0]
        assert all(one.transcript and one.phones and Path(one.audio).is_file() for one in voices(model))
    with pytest.raises(
        SettingError,
        match=f"no voice named 'nobody'; known voices: {', '.join(shipped_names())}",
    ):
        voice("nobody", "megatts3-mini")


def test_recordings_need_latents_only_where_there_is_no_encoder(tmp_path: Path) -> None:
    audio, model = tmp_path / "mine.wav", tmp_path / "model"
    assert voice_problem(audio, "f5-mini") == voice_problem(audio, "megatts3-mini") == ""
    assert "mine.wav has no latents" in voice_problem(audio, "MegaTTS3", str(model))
    (model / "wavvae").mkdir(parents=True)
    (model / "wavvae" / "model_only_last.ckpt").write_bytes(b"0")
    assert voice_problem(audio, "MegaTTS3", str(model)) == ""
    audio.with_suffix(".npy").write_bytes(b"0")
    assert voice_problem(audio, "MegaTTS3") == ""


@pytest.mark.parametrize(
    ("transcript", "said"),
    [
        ("Guten Tag, wie geht es Ihnen heute Morgen, mein Herr?", "looks like German"),
        ("今天天气很好。", "is in Chinese"),
        ("Привет, как дела?", "is written in Cyrillic script"),
        ("…", "has no words; type the words spoken in it"),
    ],
)
def test_transcripts_that_the_bundled_models_cannot_read_are_told_before(transcript: str, said: str) -> None:
    audio = Path("mine.wav")
    for one in MODELS:
        problem = voice_problem(audio, one.id, transcript=transcript) if not one.released_voices else ""
        assert (f"The transcript of the recording {said}" in problem) == one.bundled
    assert voice_problem(audio, "f5-mini", transcript="We met in Los Angeles.") == ""
    assert voice_problem(audio, "f5-mini", "own", transcript) == "", "a checkpoint that may read it"
