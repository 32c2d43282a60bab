"""Qwen3-TTS's language model: the talker, one pass per frame of 80 ms, and the predictor of the other codes within it.

The talker chooses a frame's first code; from its hidden state the predictor, a small transformer, chooses the others
one after another. The sum of all embeddings of a frame, with the next part of the text, is the talker's next input.
Positions are ordinary rotary ones: the release's three rows of them are always equal.

Official names: ``core/models/modeling_qwen3_tts.py`` of ``qwen-tts`` 0.1.1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from paretone.models.files.config_file import ConfigFile
from paretone.models.networks.causal import CausalConfig, CausalTransformer
from paretone.models.networks.layers import chained
from paretone.models.networks.shapes import Modules

LEAST_FRAMES = 2
"""Frames before which speech cannot end."""


@dataclass(frozen=True)
class TalkerConfig:
    transformer: CausalConfig
    predictor: CausalConfig
    text_rows: int
    text_width: int
    rows: int
    """Rows of the talker's codes and marks."""
    codes: int
    """Codes of each group."""
    groups: int
    """Codes per frame."""
    end: int
    """Id that ends speech."""

    @property
    def spoken(self) -> Tensor:
        """Ids of the talker's codes and, last, of the end, in the order of local ids."""
        return torch.tensor([*range(self.codes), self.end])

    @classmethod
    def read(cls, config: ConfigFile | Mapping) -> TalkerConfig:
        """Read ``talker_config`` of the release's ``config.json``. Raises
        :class:`paretone.errors.CheckpointError`."""
        file = ConfigFile.of(config, "The config.json of Qwen3-TTS")
        predictor = file.part("code_predictor_config", needed=True)
        return cls(
            transformer=_transformer(file),
            predictor=_transformer(predictor),
            text_rows=file.number("text_vocab_size"),
            text_width=file.number("text_hidden_size"),
            rows=file.number("vocab_size"),
            codes=predictor.number("vocab_size"),
            groups=file.number("num_code_groups", least=2),
            end=file.number("codec_eos_token_id"),
        )


def _transformer(file: ConfigFile) -> CausalConfig:
    """Sizes of one of the two Qwen3 transformers, whose entries name no type."""
    entries = {name: value for name, value in file.entries.items() if name != "rope_scaling"}
    read = CausalConfig.read(ConfigFile({**entries, "model_type": "llama"}, file.where))
    return replace(read, normed=True)


class TalkerTransformer(CausalTransformer):
    """The talker's layers with the tables of text and of its own codes."""

    def __init__(self, config: TalkerConfig) -> None:
        super().__init__(config.transformer)
        self.text_embedding = nn.Embedding(config.text_rows, config.text_width)
        self.codec_embedding = nn.Embedding(config.rows, config.transformer.hidden)


class PredictorTransformer(CausalTransformer):
    """The predictor's layers with a table for each group of codes but the first and the last, in the talker's width."""

    def __init__(self, config: TalkerConfig) -> None:
        super().__init__(config.predictor)
        width = config.transformer.hidden
        self.codec_embedding = Modules(nn.Embedding(config.codes, width) for _ in range(config.groups - 1))


class CodePredictor(nn.Module):
    """The codes of a frame after its first."""

    def __init__(self, config: TalkerConfig) -> None:
        super().__init__()
        width, inner = config.transformer.hidden, config.predictor.hidden
        self.model = PredictorTransformer(config)
        self.lm_head = Modules(nn.Linear(inner, config.codes, bias=False) for _ in range(config.groups - 1))
        self.small_to_mtp_projection = nn.Linear(width, inner) if width != inner else nn.Identity()

    def scores(self, inputs: Tensor) -> Tensor:
        """Scores of all groups but the first in one pass, (B, groups - 1, codes). ``inputs`` (B, groups, hidden): the
        talker's hidden state, the embedding of the first code, and those of the others but the last."""
        hidden = self.model(self.small_to_mtp_projection(inputs))[:, 1:]
        return torch.stack([head(hidden[:, place]) for place, head in enumerate(self.lm_head)], dim=1)


@dataclass(frozen=True)
class FramePrompt:
    """What the talker reads before the first frame, and with each frame."""

    embedded: Tensor
    """(length, hidden)."""
    trailing: Tensor
    """Text fed with each frame, (n, hidden)."""
    padding: Tensor
    """Fed after that, (hidden,)."""
    shared: int = 0
    """Number of first positions that do not depend on the text."""

    def fed_with(self, frame: int) -> Tensor:
        """(hidden,)."""
        return self.trailing[frame] if frame < len(self.trailing) else self.padding


class Talker(nn.Module):
    """Talker and predictor; ``state_dict`` has the official names without their prefix ``talker.``."""

    def __init__(self, config: TalkerConfig) -> None:
        super().__init__()
        self.config = config
        self.model = TalkerTransformer(config)
        wide, narrow = config.text_width, config.transformer.hidden
        self.text_projection = chained(
            linear_fc1=nn.Linear(wide, wide), silu=nn.SiLU(), linear_fc2=nn.Linear(wide, narrow)
        )
        self.codec_head = nn.Linear(config.transformer.hidden, config.rows, bias=False)
        self.code_predictor = CodePredictor(config)

    def tables(self, others: Tensor | None = None) -> Tables:
        """Its prompts' embeddings. ``others``: the predictor's tables as one tensor, if there is one already."""
        if others is None:
            others = torch.stack([one.weight for one in self.code_predictor.model.codec_embedding])
        model = self.model
        return Tables(model.text_embedding.weight, self.text_projection, model.codec_embedding.weight, others)


@dataclass(frozen=True)
class Tables:
    """The embeddings of texts and codes."""

    texts: Tensor
    """(rows, text width), in the type in which it is stored: a prompt needs few of its rows."""
    projection: nn.Sequential
    first: Tensor
    """Codes of the first group and marks, (rows, hidden)."""
    others: Tensor
    """(groups - 1, codes, hidden)."""

    @property
    def device(self) -> torch.device:
        return self.first.device

    def text(self, ids: Sequence[int]) -> Tensor:
        """Text ids (n,) to (n, hidden)."""
        found = self.texts[torch.tensor(list(ids), dtype=torch.long, device=self.device)]
        return self.projection(found.to(self.first.dtype))

    def code(self, ids: Sequence[int]) -> Tensor:
        """Codes of the first group, or marks, (n,) to (n, hidden)."""
        return self.first[torch.tensor(list(ids), dtype=torch.long, device=self.device)]

    def frames(self, codes: Tensor) -> Tensor:
        """Complete frames (groups, n) to (n, hidden)."""
        codes = codes.to(self.device)
        groups = torch.arange(len(self.others), device=self.device)
        return self.first[codes[0]] + self.others[groups[:, None], codes[1:]].sum(0)
