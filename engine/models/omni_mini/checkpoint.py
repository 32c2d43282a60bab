"""The folder of the bundled masked model.

====================  ==========================================================================================
``model.safetensors``   the network in float16 under OmniVoice's names; ``config.json`` beside it in its layout
``layout.json``         what the text tokens mean; see :mod:`engine.models.omni_mini.layout`
``codec``               the residual codec; see :mod:`engine.models.omni_mini.codec`
``durations.json``      mean durations of phones
====================  ==========================================================================================
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from engine.errors import CheckpointError
from engine.front_end.durations import DurationTable
from engine.models.checkpoints import load_strictly, read_weights
from engine.models.masked_network import MaskedConfig, MaskedNetwork
from engine.models.omni_mini.codec import CodecFolder
from engine.models.omni_mini.layout import LAYOUT_FILE, Layout
from engine.models.shapes import without_weights

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
        path = self.root / CONFIG
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise CheckpointError(f"{path} cannot be read ({error}); restore the model folder.") from error
        return MaskedConfig.read(data)

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
