"""Writing a trained F5 model as the official releases are laid out, with what the bundled front end needs next to
it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
import yaml

from engine.front_end.phones import PhoneVocabulary
from engine.models.f5.checkpoint import PHONES
from engine.models.f5.config import HOP, MEL_BANDS, SAMPLE_RATE
from engine.models.f5.dit import DiT
from engine.models.f5.saving import save_official
from engine.training.corpora import Clip, Corpus, speak
from engine.training.recipes.durations import write_duration_tables
from engine.training.sentences import PROMPT


def export_f5(folder: Path, name: str, model: DiT, vocabulary: PhoneVocabulary, corpus: Corpus, step: int) -> None:
    """Write what :func:`export_layout` does, ``durations.json`` and ``voices/``."""
    (folder / "voices").mkdir(parents=True, exist_ok=True)
    export_layout(folder, name, model, vocabulary, step)
    write_duration_tables(folder / "durations.json", corpus.training, vocabulary.phones)
    for voice in sorted({clip.voice for clip in corpus.training}):
        export_voice(folder / "voices", voice)


def export_layout(
    folder: Path, name: str, model: DiT, vocabulary: PhoneVocabulary, step: int, front_end: str = PHONES
) -> None:
    """Write ``model.safetensors`` (float16, official keys), ``model.yaml``, ``vocab.txt``."""
    folder.mkdir(parents=True, exist_ok=True)
    save_official(folder / "model.safetensors", model, step)
    (folder / "model.yaml").write_text(
        yaml.safe_dump(_configuration(name, model, front_end), sort_keys=False), encoding="utf-8"
    )
    (folder / "vocab.txt").write_text("".join(phone + "\n" for phone in vocabulary.phones), encoding="utf-8")


def _configuration(name: str, model: DiT, front_end: str) -> dict[str, dict]:
    config = model.config
    entries = ("dim", "depth", "heads", "ff_mult", "text_dim", "text_mask_padding", "conv_layers")
    spectrogram: dict[str, Any] = {"target_sample_rate": SAMPLE_RATE, "n_mel_channels": MEL_BANDS, "hop_length": HOP}
    spectrogram |= {"win_length": 1024, "n_fft": 1024, "mel_spec_type": "vocos"}
    return {
        "model": {
            "name": name,
            "tokenizer": "custom",
            "text_frontend": front_end,
            "backbone": config.backbone,
            "arch": {entry: getattr(config, entry) for entry in entries},
            "mel_spec": spectrogram,
        }
    }


def export_voice(folder: Path, voice: str) -> Clip:
    """Write the prompt as 24-bit audio, and its text and phones: 16 bits would lift the silent bands above 8 kHz far
    above where the model knows them."""
    clip = speak(PROMPT, voice)
    soundfile.write(folder / f"{voice}.wav", np.asarray(clip.samples), SAMPLE_RATE, subtype="PCM_24")
    content = {"text": clip.text, "phones": [list(phone) for phone in clip.phones]}
    (folder / f"{voice}.json").write_text(json.dumps(content) + "\n", encoding="utf-8")
    return clip
