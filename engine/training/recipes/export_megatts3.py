"""Writing a trained MegaTTS 3 as the official release is laid out, as far as that applies, and what the bundled front
end needs next to it.

In place of aligner, grapheme and duration models there is ``durations.json``; in place of WavVAE, the mel codec; and
every voice comes with the phones of its recording and, as the official voices do, with its latents.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from engine.audio.mel import MelFrontEnd
from engine.front_end.phones import CONSONANTS, PAUSE, VOWELS
from engine.models.catalogue import VOICES
from engine.models.f5.config import HOP
from engine.models.megatts3.checkpoint import WAVVAE
from engine.models.megatts3.config import LATENTS
from engine.models.megatts3.dit import MegaDiT
from engine.models.minis.folder import DURATIONS
from engine.models.minis.megatts3_mini.mel_codec import CONFIG_FILE, WEIGHT_FILE, MelCodec
from engine.training.corpus import Corpus
from engine.training.recipes.durations import write_duration_tables
from engine.training.recipes.export_f5 import export_voice
from engine.training.recipes.megatts3_layout import export_transformer

PHONES = (PAUSE, *sorted(VOWELS | CONSONANTS))


def export_mega(folder: Path, model: MegaDiT, codec_folder: Path, corpus: Corpus) -> None:
    """Write ``diffusion_transformer/`` (float16, official keys), ``wavvae/``, ``durations.json`` and ``voices/``."""
    codec = MelCodec.load(codec_folder)
    export_transformer(folder, model, HOP, codec.config.stride)
    (folder / WAVVAE).mkdir(parents=True, exist_ok=True)
    for name in (CONFIG_FILE, WEIGHT_FILE):
        (folder / WAVVAE / name).write_bytes((codec_folder / name).read_bytes())
    write_duration_tables(folder / DURATIONS, corpus.training, PHONES)
    (folder / VOICES).mkdir(exist_ok=True)
    for voice in sorted({clip.voice for clip in corpus.training}):
        _export_voice(folder / VOICES, voice, codec)


@torch.inference_mode()
def _export_voice(folder: Path, voice: str, codec: MelCodec) -> None:
    clip = export_voice(folder, voice)
    frames = clip.frames - clip.frames % codec.config.stride
    mel = MelFrontEnd()(torch.from_numpy(clip.samples))[:, :frames]
    np.save(folder / f"{voice}{LATENTS}", codec.encode(mel).numpy())
