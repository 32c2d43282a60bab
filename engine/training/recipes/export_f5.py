"""Writing what the front end of flite's phones needs next to a trained F5 model."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import soundfile

from engine.front_end.phones import PhoneVocabulary
from engine.models.f5.config import SAMPLE_RATE
from engine.models.f5.dit import DiT
from engine.training.corpora import Clip, speak
from engine.training.corpus import Corpus
from engine.training.recipes.durations import write_duration_tables
from engine.training.recipes.f5_layout import export_layout
from engine.training.sentences import PROMPT


def export_f5(folder: Path, name: str, model: DiT, vocabulary: PhoneVocabulary, corpus: Corpus, step: int) -> None:
    """Write what :func:`export_layout` does, ``durations.json`` and ``voices/``."""
    (folder / "voices").mkdir(parents=True, exist_ok=True)
    export_layout(folder, name, model, vocabulary, step)
    write_duration_tables(folder / "durations.json", corpus.training, vocabulary.phones)
    for voice in sorted({clip.voice for clip in corpus.training}):
        export_voice(folder / "voices", voice)


def export_voice(folder: Path, voice: str) -> Clip:
    """Write the prompt as 24-bit audio, and its text and phones: 16 bits would lift the silent bands above 8 kHz far
    above where the model knows them."""
    clip = speak(PROMPT, voice)
    soundfile.write(folder / f"{voice}.wav", np.asarray(clip.samples), SAMPLE_RATE, subtype="PCM_24")
    content = {"text": clip.text, "phones": [list(phone) for phone in clip.phones]}
    (folder / f"{voice}.json").write_text(json.dumps(content) + "\n", encoding="utf-8")
    return clip
