"""OmniVoice as published: a Hugging Face folder with ``config.json``, ``tokenizer.json`` and weights, and the same for
the codec in ``audio_tokenizer``. Reading is strict: errors name unknown, missing and differently shaped weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import torch
from torch import nn

from paretone.errors import CheckpointError
from paretone.extras import needing
from paretone.models.files.checkpoints import Shards, in_float32, load_strictly, loaded_strictly
from paretone.models.files.config_file import ConfigFile
from paretone.models.networks.masked_network import MaskedConfig, MaskedNetwork
from paretone.models.networks.shapes import without_weights
from paretone.models.omnivoice.config import INSTALL
from paretone.models.omnivoice.higgs import HiggsConfig, HiggsDecoder, HiggsEncoder
from paretone.models.omnivoice.text import OmniVoiceTokenizer
from paretone.observer import Check
from paretone.reading import named_first

if TYPE_CHECKING:
    from transformers import HubertModel

_Part = TypeVar("_Part", bound=nn.Module)

CONFIG, CODEC = "config.json", "audio_tokenizer"
TRAINING_ONLY = ("codebook.cluster_size", "codebook.embed_avg", "codebook.inited", "semantic_model.masked_spec_embed")
"""Suffixes of names used only in the codec's training."""
UNUSED = ("decoder_semantic.", "fc1.")
"""Prefixes of names used neither for encoding nor for decoding."""


@dataclass(frozen=True)
class OmniVoiceFolder:
    """A release. All reading methods raise :class:`CheckpointError` that names missing, unexpected or differently
    shaped weights; ``check`` is called between weights and may raise to cancel."""

    root: Path
    check: Check = lambda: None

    def tokenizer(self) -> OmniVoiceTokenizer:
        return OmniVoiceTokenizer.read(self.root)

    def config(self) -> MaskedConfig:
        return MaskedConfig.read(ConfigFile.read(self.root / CONFIG))

    @property
    def shards(self) -> Shards:
        return Shards.find(self.root)

    def network(self, device: torch.device | str = "cpu") -> MaskedNetwork:
        return read_network(self.shards, self.config(), device, self.check)

    def codec_config(self) -> HiggsConfig:
        return HiggsConfig.read(ConfigFile.read(self.root / CODEC / CONFIG))

    def decoder(self, device: torch.device | str = "cpu") -> HiggsDecoder:
        config = self.codec_config()
        return self._codec_part(lambda: HiggsDecoder(config), device)

    def encoder(self, device: torch.device | str = "cpu") -> HiggsEncoder:
        """Encoder of recordings, which needs the package ``transformers``."""
        config = self.codec_config()
        return self._codec_part(lambda: HiggsEncoder(config, hubert(config)), device)

    def _codec_part(self, make: Callable[[], _Part], device: torch.device | str) -> _Part:
        """The module from ``make`` with its weights from the codec's, all of which must be known."""
        shards = Shards.find(self.root / CODEC)
        shapes = shards.shapes()
        strange = [name for name in shapes if not self.is_of_codec(name)]
        if strange:
            raise CheckpointError(f"{shards.where} is not the codec of OmniVoice: it holds {named_first(strange, 5)}.")
        with without_weights(shapes, shards.where):
            module = make()
        wanted = module.state_dict()
        weights, _ = shards.read(wanted.__contains__, self.check)
        load_strictly(module, in_float32(weights), shards.where, assign=True)
        return module.eval().requires_grad_(False).to(device)

    @staticmethod
    def is_of_codec(name: str) -> bool:
        """Whether the official codec has a weight of this name, used or not."""
        known = ("acoustic_encoder.", "acoustic_decoder.", "encoder_semantic.", "semantic_model.", "fc.", "fc2.")
        inside = name.startswith("quantizer.quantizers.") and (".project_" in name or name.endswith("codebook.embed"))
        return inside or name.startswith((*known, *UNUSED)) or name.endswith(TRAINING_ONLY)


def read_network(
    shards: Shards, config: MaskedConfig, device: torch.device | str = "cpu", check: Check = lambda: None
) -> MaskedNetwork:
    """A network in OmniVoice's layout, float32, for inference. Raises :class:`CheckpointError`."""
    weights, _ = shards.read(check=check)
    for name, value in weights.items():
        check()
        weights[name] = value.to(device, torch.float32 if value.is_floating_point() else value.dtype)
    return loaded_strictly(lambda: MaskedNetwork(config), weights, shards.where, assign=True)


def hubert(config: HiggsConfig) -> HubertModel:
    """HuBERT of the codec, without weights. Raises :class:`CheckpointError` if ``transformers`` is missing."""
    with needing(CheckpointError, "A voice is encoded by HuBERT of the package transformers", INSTALL):
        from transformers import HubertConfig, HubertModel
    # Masking is for training, and its embedding is not published.
    return HubertModel(HubertConfig(**{**config.semantic, "apply_spec_augment": False, "mask_time_prob": 0.0}))
