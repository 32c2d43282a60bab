"""A small model of the bundled kind with random weights, and speech-like recordings under a manifest."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import torch
import yaml

from engine.models.f5.dit import DiT
from engine.models.f5.saving import save_official
from engine.paths import resource
from engine.training.manifest import write_clips
from engine.training.recipes.f5_mini import ARCHITECTURE
from engine.training.recipes.f5_recipe import initialise
from tests.engine.training.toy_corpus import toy_corpus

SMALL = replace(ARCHITECTURE, dim=64, depth=2, heads=2, dim_head=32, text_dim=32, conv_layers=1)


def toy_model(folder: Path, metadata: dict[str, str] | None = None) -> Path:
    """Write a small checkpoint with its companion files; returns the folder."""
    folder.mkdir()
    torch.manual_seed(5)
    model = DiT(SMALL)
    initialise(model, torch.zeros(100))
    with torch.no_grad():  # At zero the output would say the mean whatever the text.
        model.proj_out.weight.normal_(0, 0.05)
    save_official(folder / "model.safetensors", model, 0, metadata)
    names = ("dim", "depth", "heads", "dim_head", "ff_mult", "text_dim", "text_mask_padding", "conv_layers")
    content = yaml.safe_load(resource("models", "f5-mini", "model.yaml").read_text(encoding="utf-8"))
    content["model"]["arch"] = {name: getattr(SMALL, name) for name in names}
    (folder / "model.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    for name in ("vocab.txt", "durations.json"):
        shutil.copy(resource("models", "f5-mini", name), folder)
    return folder


def toy_manifest(folder: Path, clips: int = 12) -> Path:
    """Write recordings of 60 frames and more with their phones, four of them to validate on; the manifest's path."""
    corpus = toy_corpus(clips)
    path = folder / "speech" / "manifest.csv"
    path.parent.mkdir(parents=True)
    write_clips(path, corpus.training, corpus.held_out)
    return path
