"""The folder of the bundled masked model.

====================  ==========================================================================================
``model.safetensors``   the network in float16 under OmniVoice's names; ``config.json`` beside it in its layout
``layout.json``         what the text tokens mean; see :mod:`engine.models.minis.omni_mini.layout`
``codec``               the residual codec; see :mod:`engine.models.minis.omni_mini.codec`
``durations.json``      mean durations of phones
====================  ==========================================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from engine.front_end.durations import DurationTable
from engine.models.files.checkpoints import load_strictly, read_description, read_weights
from engine.models.minis.omni_mini.codec import CodecFolder
from engine.models.minis.omni_mini.layout import LAYOUT_FILE, Layout
from engine.models.networks.masked_network import MaskedConfig, MaskedNetwork
from engine.models.networks.shapes import without_weights

WEIGHTS, CONFIG, CODEC, DURATIONS = "model.safetensors", "config.json", "codec", "durations.json"


@dataclass(frozen=True)
class OmniMiniFolder:
    """A folder of this layout. Every method that reads raises :class:`CheckpointError`, and calls ``check`` now and
    then, which may raise to cancel."""

    root: Path
    check: Callable[[], None] = lambda: None

    @property
    def weights_path(self) -> Path:
        """The weight file by which the model is told from others."""
        return self.root / WEIGHTS

    def layout(self) -> Layout:
        """What the text tokens mean."""
        return Layout.read(self.root / LAYOUT_FILE)

    def config(self) -> MaskedConfig:
        """Sizes of the network."""
        return MaskedConfig.read(read_description(self.root / CONFIG))

    def network(self) -> MaskedNetwork:
        """The network in float32, on the processor."""
        with without_weights():
            network = MaskedNetwork(self.config())
        weights = {
            name: value.float() if value.is_floating_point() else value
            for name, value in read_weights(self.weights_path, self.check).items()
        }
        load_strictly(network, weights, str(self.weights_path), assign=True)
        return network.eval().requires_grad_(False)

    @property
    def codec(self) -> CodecFolder:
        """Where its codec lies."""
        return CodecFolder(self.root / CODEC)

    def durations(self) -> DurationTable:
        """How long phones sound."""
        return DurationTable.load(self.root / DURATIONS)
