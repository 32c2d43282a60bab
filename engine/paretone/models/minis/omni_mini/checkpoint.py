"""The folder of the bundled masked model.

====================  ==========================================================================================
``model.safetensors``   the network in float16 under OmniVoice's names; ``config.json`` next to it in its layout
``layout.json``         what the text tokens mean; see :mod:`paretone.models.minis.omni_mini.layout`
``codec``               the residual codec; see :mod:`paretone.models.minis.omni_mini.codec`
====================  ==========================================================================================
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from paretone.models.files.checkpoints import load_strictly, read_float_weights
from paretone.models.files.config_file import ConfigFile
from paretone.models.minis.folder import CONFIG, LAYOUT_FILE, MiniFolder
from paretone.models.minis.omni_mini.codec import ResidualCodec
from paretone.models.minis.omni_mini.layout import Layout
from paretone.models.networks.masked_network import MaskedConfig, MaskedNetwork
from paretone.models.networks.quantised_mel import read_quantised_mel
from paretone.models.networks.shapes import without_weights

CODEC = "codec"


@dataclass(frozen=True)
class OmniMiniFolder(MiniFolder):
    """A folder of this layout."""

    def layout(self) -> Layout:
        """Layout of text tokens."""
        return Layout.read(self.root / LAYOUT_FILE)

    def config(self) -> MaskedConfig:
        """Sizes of the network."""
        return MaskedConfig.read(ConfigFile.read(self.root / CONFIG))

    def network(self) -> MaskedNetwork:
        """The network in float32, on the processor."""
        config, weights = self.config(), read_float_weights(self.weights_path, self.check)
        with without_weights(weights, str(self.weights_path)):
            network = MaskedNetwork(config)
        load_strictly(network, weights, str(self.weights_path), assign=True)
        return network.eval().requires_grad_(False)

    def codec(self, device: torch.device | str = "cpu") -> ResidualCodec:
        """The codec of what is said and codes."""
        return read_quantised_mel(self.root / CODEC, ResidualCodec, device)
