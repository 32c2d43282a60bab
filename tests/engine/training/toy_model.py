"""A small model of the bundled kind with random weights, and speech-like recordings under a manifest."""

from dataclasses import replace
from pathlib import Path

import soundfile
import torch
import yaml

from paretone.models.f5.config import SAMPLE_RATE
from paretone.models.f5.dit import DiT
from paretone.training.features import Examples
from paretone.training.manifest import ManifestRow
from paretone.training.spoken_tokens import VOCABULARY
from tests.engine.awake import awake
from tests.engine.training.manifests import write_manifest
from tests.engine.training.toy_corpus import toy_corpus
from tests.tools.recipes.natural_f5 import SMALL_F5, aligned_example, export_layout, initialise, save_official

SMALL = replace(SMALL_F5, dim=64, depth=2, heads=2, dim_head=32, text_dim=32, conv_layers=1)


def toy_model(folder: Path, metadata: dict[str, str] | None = None) -> Path:
    """Write a small checkpoint with its companion files; returns the folder."""
    folder.mkdir()
    torch.manual_seed(5)
    model = DiT(replace(SMALL, text_num_embeds=len(VOCABULARY.phones)))
    initialise(model)
    with torch.no_grad():  # At zero the output would say the mean whatever the text.
        model.proj_out.weight.normal_(0, 0.05)
    awake(model)
    export_layout(folder, "toy", model, VOCABULARY, 0)
    described = yaml.safe_load((folder / "model.yaml").read_text(encoding="utf-8"))
    described["model"]["arch"]["dim_head"] = SMALL.dim_head
    (folder / "model.yaml").write_text(yaml.safe_dump(described), encoding="utf-8")
    save_official(folder / "model.safetensors", model, 0, metadata)
    return folder


def toy_examples() -> Examples:
    """The toy corpus as the small model sees it."""
    corpus = toy_corpus()
    return Examples(tuple(map(aligned_example, corpus.training)), tuple(map(aligned_example, corpus.held_out)))


def toy_manifest(folder: Path, clips: int = 12) -> Path:
    """Write recordings of 60 frames and more with their phones, four of them to validate on; the manifest's path."""
    corpus, rows = toy_corpus(clips), []
    path = folder / "speech" / "manifest.csv"
    path.parent.mkdir(parents=True)
    for number, clip in enumerate((*corpus.training, *corpus.held_out)):
        audio = path.parent / f"{number}.flac"
        soundfile.write(audio, clip.samples, SAMPLE_RATE, subtype="PCM_24")
        rows.append(ManifestRow(0, audio, clip.text, clip.phones, clip.voice, number >= len(corpus.training)))
    return write_manifest(path, rows)
