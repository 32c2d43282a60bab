"""The folder of the bundled language model.

====================  ==========================================================================================
``model.safetensors``   a Llama in float16 under Hugging Face's names; ``config.json`` next to it ``layout.json``
which ids are phones and which are speech tokens; see :mod:`paretone.models.minis.lm_mini.layout` ``tokenizer``
the speech tokenizer; see :mod:`paretone.models.minis.lm_mini.speech_tokenizer` ``drafts``, ``students``  what was
trained from it; see :mod:`paretone.models.files.language_weights` ====================
=========================================================================================="""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from paretone.errors import CheckpointError
from paretone.models.base import DraftWeights, StudentWeights
from paretone.models.families.language_network import DraftTensors, LanguageNetwork
from paretone.models.families.token_model import TokenModel
from paretone.models.files.checkpoints import (
    check_shapes,
    loaded_strictly,
    opened,
    read_float_weights,
    read_weights,
    require_fractions,
    require_numbers,
)
from paretone.models.files.config_file import ConfigFile
from paretone.models.files.layer_importance import layer_of
from paretone.models.minis.folder import CONFIG, LAYOUT_FILE, MiniFolder
from paretone.models.minis.lm_mini.layout import Layout
from paretone.models.minis.lm_mini.speech_tokenizer import SpeechTokenizer
from paretone.models.networks.causal import CausalConfig, CausalTransformer
from paretone.models.networks.quantised_mel import read_quantised_mel

TOKENIZER = "tokenizer"
EMBEDDING, HEAD, BODY = "model.embed_tokens.weight", "lm_head.weight", "model."
TEXT = "text"
"""The table that prompts are embedded with: the whole one."""


@dataclass(frozen=True)
class LmMiniFolder(MiniFolder):
    """A folder of this layout."""

    def layout(self) -> Layout:
        """Which ids are what."""
        return Layout.read(self.root / LAYOUT_FILE)

    def config(self) -> CausalConfig:
        """Sizes of the transformer."""
        return CausalConfig.read(ConfigFile.read(self.root / CONFIG))

    def network(self, device: torch.device) -> LanguageNetwork:
        """The model's own network, for inference."""
        return self._network(self.weights_path, self.config(), device)

    def parameters(self) -> int:
        """Number of parameters of the language model, whole tables counted."""
        with opened(self.weights_path) as file:
            return sum(math.prod(file.get_slice(name).get_shape()) for name in file.keys())  # noqa: SIM118

    def student(self, student: StudentWeights, device: torch.device) -> LanguageNetwork:
        """A student's network, for inference."""
        return self._network(Path(student.path), replace(self.config(), layers=student.depth), device)

    def draft(self, draft: DraftWeights) -> DraftTensors:
        """Content of a draft's file."""
        layout, head = self.layout(), None
        layers: dict[int, dict[str, Tensor]] = {}
        for name, value in read_weights(Path(draft.path), self.check).items():
            number = layer_of(name)
            if name == HEAD:
                head = self._rows(value, layout, draft.path)
            elif number is not None and name.startswith(prefix := f"{BODY}layers.{number}."):
                layers.setdefault(number, {})[name.removeprefix(prefix)] = value
            else:
                raise CheckpointError(f"{draft.path} holds {name}, which drafts do not have; train it again.")
        return DraftTensors(layers, head)

    def tokenizer(self, device: torch.device) -> SpeechTokenizer:
        """The speech tokenizer."""
        return read_quantised_mel(self.root / TOKENIZER, SpeechTokenizer, device)

    def _network(self, path: Path, config: CausalConfig, device: torch.device) -> LanguageNetwork:
        layout, where = self.layout(), str(path)
        weights = read_float_weights(path, self.check)
        body = {name.removeprefix(BODY): value for name, value in weights.items() if name not in (EMBEDDING, HEAD)}
        require_fractions(weights, where)
        _require_tables(weights, config, where)
        require_numbers({name: weights[name] for name in (EMBEDDING, HEAD)}, where)
        transformer = loaded_strictly(lambda: CausalTransformer(config), body, where)
        embedding, head = (self._rows(weights[name], layout, where) for name in (EMBEDDING, HEAD))
        tokens = TokenModel(transformer.to(device), embedding.to(device), head.to(device), codes=layout.codes)
        return LanguageNetwork(tokens.eval().optimised(), {TEXT: weights[EMBEDDING].to(device)})

    @staticmethod
    def _rows(table: Tensor, layout: Layout, where: str) -> Tensor:
        """The rows of an official table that can be spoken, in float32."""
        if table.dim() != 2 or len(table) < layout.ids:
            raise CheckpointError(f"{where} has a table with {len(table)} rows, but {LAYOUT_FILE} names {layout.ids}.")
        return table[layout.rows].float()


def _require_tables(weights: Mapping[str, Tensor], config: CausalConfig, where: str) -> None:
    ids = len(weights[EMBEDDING]) if EMBEDDING in weights else 0
    tables = {name: tuple(weights[name].shape) for name in (EMBEDDING, HEAD) if name in weights}
    check_shapes({EMBEDDING: (ids, config.hidden), HEAD: (ids, config.hidden)}, tables, where)
