"""The recipe of the bundled masked-diffusion model, ``omni-mini``: :mod:`engine.training.recipes.omni_recipe` over the
codes of :mod:`engine.training.recipes.codec_mini`. A table of mean durations stands in for the alignment at synthesis.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from engine.front_end.frame_phones import labels
from engine.models.minis.folder import DURATIONS
from engine.models.minis.omni_mini.codec import ResidualCodec
from engine.models.minis.omni_mini.layout import Layout
from engine.training.corpora import Clip
from engine.training.recipes.durations import write_duration_tables
from engine.training.recipes.mel_excerpts import VOCABULARY
from engine.training.recipes.omni_recipe import OmniRecipe
from engine.training.spoken_tokens import FRAMES, SpokenTokens

LAYOUT = Layout(VOCABULARY)


class OmniMini(OmniRecipe[Clip]):
    """Trains it on flite's speech."""

    name = "omni-mini"
    layout, longest = LAYOUT, FRAMES[1]

    @torch.inference_mode()
    def encoded(self, clip: Clip, codec: ResidualCodec) -> SpokenTokens:
        mel = torch.from_numpy(clip.mel.astype(np.float32))[None].to(codec.mel_mean.device)
        text = self.layout.text(labels(clip.phones, clip.frames, self.layout.vocabulary), codec.config.stride)
        return SpokenTokens(clip.voice, text.astype(np.int16), codec.encode(mel)[0].cpu().numpy().astype(np.int16))

    def export(self, folder: Path) -> None:
        super().export(folder)
        write_duration_tables(folder / DURATIONS, self.corpus.training, self.layout.vocabulary.phones)
