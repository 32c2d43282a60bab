"""MegaTTS 3 and MegaTTS 3 mini, declared."""

from __future__ import annotations

from pathlib import Path

from paretone.models.base import FLOW
from paretone.models.declaration import Model, Voices
from paretone.models.files.releases import APACHE, Release, files_of
from paretone.models.megatts3.config import BUNDLED_OPTIONS, ENCODER, LATENTS, LAYOUT, OPTIONS, no_latents
from paretone.sampling.guidance import TwoWeightGuidance
from paretone.sampling.options import READING
from paretone.setting.knobs import Values

LOADER, WEIGHTS = "paretone.models.megatts3.adapter:load_megatts3", "diffusion_transformer"
_FILES = files_of(
    "ByteDance/MegaTTS3",
    APACHE,
    *(f"{part}/config.yaml" for part in (WEIGHTS, "aligner_lm", "duration_lm", "wavvae")),
    *(f"g2p/{name}.json" for name in ("added_tokens", "config", "generation_config", "special_tokens_map")),
    *(f"g2p/{name}.json" for name in ("tokenizer", "tokenizer_config", "vocab")),
    "g2p/merges.txt",
    *(f"{part}/model_only_last.ckpt" for part in ("aligner_lm", "duration_lm")),
    "wavvae/decoder.ckpt",
    "g2p/model.safetensors",
    f"{WEIGHTS}/model_only_last.ckpt",
)
"""The complete release except its training logs. The encoder, :data:`ENCODER`, was never published."""
_ADVICE = (
    "It speaks only in voices with released latents, which the download does not include: put name.wav and "
    "name.npy into {}. https://github.com/bytedance/MegaTTS3 says where they are."
)


def _is_mini(folder: Path) -> float:
    return float((folder / WEIGHTS / "model.safetensors").is_file())


MODELS = (
    Model(
        id="megatts3-mini",
        title="MegaTTS 3 mini",
        summary="11 million parameters in the official layout, five voices, English; ships with Paretone.",
        family=FLOW,
        licence=APACHE,
        loader=LOADER,
        options=(*BUNDLED_OPTIONS, *READING),
        default_options=Values(steps=16, intelligibility=1.4, similarity=1.2),
        bundled=True,
        kind="MegaTTS 3",
        variant="megatts3-mini",
        layout=LAYOUT,
        subject="paretone.training.megatts3_flow:subject",
        weights=WEIGHTS,
        vocoder="natural-vocoder",
        voices=Voices(shortened=True),
        guidance=TwoWeightGuidance(),
        recognised=_is_mini,
        place=50,
    ),
    Model(
        id="MegaTTS3",
        title="MegaTTS 3",
        summary="459 million parameters, English and Chinese; speaks only in voices whose latents were released.",
        family=FLOW,
        licence=APACHE,
        loader=LOADER,
        options=OPTIONS,
        release=Release(APACHE, _FILES, _ADVICE),
        variant="MegaTTS3",
        layout=LAYOUT,
        subject="paretone.training.megatts3_flow:subject",
        weights=WEIGHTS,
        voices=Voices(latents=LATENTS, encoder=ENCODER, no_latents=no_latents),
        guidance=TwoWeightGuidance(),
        recognised=lambda folder: (folder / WEIGHTS).is_dir() - _is_mini(folder),
        place=60,
    ),
)
