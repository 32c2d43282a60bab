"""The language model of CosyVoice 2 and 3, with text and prompt before the speech tokens.

``[sos] text [task] speech``: the prompt's transcript and the text are concatenated, and the prompt's speech tokens
precede the new ones. The transformer is Qwen2 (``llm/llm.py``, ``Qwen2LM`` and ``CosyVoice3LM``).

In CosyVoice 2, text, the two marks and speech have separate tables. The rows of speech after the codes are the end, an
unused one and, between parts of a text that is still being typed, the request for more. In CosyVoice 3, the marks are
among 200 rows of speech after the codes, any of which ends speech, and the head has no bias.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from paretone.errors import CheckpointError
from paretone.models.cosyvoice2.config import LEAST_TOKENS, MOST_TOKENS
from paretone.models.cosyvoice2.model import TITLE, TITLE_3
from paretone.models.families.language_network import IGNORED, Parts, TokenModel, TrainingRow
from paretone.models.files.checkpoints import check_shapes, require_fractions, require_numbers, shapes_of
from paretone.models.files.config_file import WeightShapes
from paretone.models.networks.causal import CausalConfig, CausalTransformer
from paretone.models.networks.shapes import without_weights
from paretone.sampling.autoregressive import Request

STOPS = 3
END = 0
"""Index, into the stop ids, of the one that ends speech in training."""
START, TASK = 0, 1
"""Rows of the marks."""


@dataclass(frozen=True)
class TableLayout:
    """Rows of a release's tables."""

    title: str
    stops: int = STOPS
    """Rows of speech after the codes."""
    end: int = END
    marks: tuple[int, int] | None = None
    """Start and task among the stops; ``None``: in a table of their own."""
    biased: bool = True
    """Whether the head has a bias."""


COSYVOICE_2 = TableLayout(TITLE)
COSYVOICE_3 = TableLayout(TITLE_3, stops=200, end=1, marks=(0, 2), biased=False)
TRANSFORMER = "llm.model.model."
LAYERS = f"{TRANSFORMER}layers."
TEXT, MARKS, SPEECH = f"{TRANSFORMER}embed_tokens.weight", "llm_embedding.weight", "speech_embedding.weight"
HEAD, BIAS = "llm_decoder.weight", "llm_decoder.bias"
TEXT_HEAD = "llm.model.lm_head.weight"
"""Tied to the text table in the release, and never needed: speech has a separate head."""


@dataclass(frozen=True)
class PromptIds:
    """Ids before a text: the prompt's transcript (or an instruction) and speech tokens."""

    text: tuple[int, ...] = ()
    speech: tuple[int, ...] = ()


class LanguageModel:
    """Tables of text and marks, and the model of speech tokens."""

    def __init__(self, text: Tensor, marks: Tensor, tokens: TokenModel) -> None:
        """``text`` is (ids, hidden), ``marks`` (2, hidden)."""
        self.text, self.marks, self.tokens = text, marks, tokens

    @classmethod
    def from_official(
        cls, weights: Mapping[str, Tensor], config: CausalConfig, where: str, layout: TableLayout = COSYVOICE_2
    ) -> LanguageModel:
        """Load the tensors of ``llm.pt``, strictly; it may have fewer layers than ``config`` and no head of text, which
        is tied. Tensors are not copied. Raises :class:`CheckpointError`."""
        weights, title = dict(weights), "a language model of CosyVoice 2 or 3"
        shape = WeightShapes(shapes_of(weights), where, title)
        (rows, _), (ids, _) = shape(SPEECH, 2), shape(TEXT, 2)
        if rows <= layout.stops:
            raise CheckpointError(f"{where} has no speech tokens: it is not {title}.")
        config = replace(config, layers=shape.count(rf"{re.escape(LAYERS)}(\d+)\."))
        with without_weights(weights, where):
            transformer = CausalTransformer(config)
        expected = official_shapes(config, ids, rows, layout)
        if TEXT_HEAD not in weights:
            del expected[TEXT_HEAD]
        check_shapes(expected, shapes_of(weights), where)
        weights.pop(TEXT_HEAD, None)
        require_fractions(weights, where)
        require_numbers(weights, where)
        text, speech, head = (weights.pop(name) for name in (TEXT, SPEECH, HEAD))
        bias, codes = weights.pop(BIAS, None), rows - layout.stops
        marks = weights.pop(MARKS) if layout.marks is None else speech[[codes + mark for mark in layout.marks]]
        layers = {name.removeprefix(TRANSFORMER): value for name, value in weights.items()}
        transformer.load_state_dict(layers, strict=True, assign=True)
        tokens = TokenModel(transformer, speech, head, bias, codes=codes)
        return cls(text, marks, tokens.eval().requires_grad_(False))

    def to(self, device: torch.device) -> LanguageModel:
        return LanguageModel(self.text.to(device), self.marks.to(device), self.tokens.to(device))

    @property
    def codes(self) -> int:
        return self.tokens.codes

    @property
    def parameters(self) -> int:
        """Number of parameters, without the head of text."""
        return sum(one.numel() for one in (self.text, self.marks, *self.tokens.parameters()))

    def embedded(self, prompt: PromptIds, text: Sequence[int]) -> Tensor:
        """Input before the first new token, (1, length, hidden)."""
        ids = torch.tensor((*prompt.text, *text), dtype=torch.long, device=self.text.device)
        start, task = self.marks[START : START + 1], self.marks[TASK : TASK + 1]
        return torch.cat([start, F.embedding(ids, self.text), task, self.tokens.embed(prompt.speech)])[None]

    def request(
        self, prompt: PromptIds, text: Sequence[int], least: float = LEAST_TOKENS, most: float = MOST_TOKENS
    ) -> Request:
        """Decoding request for ``text``, with ``least`` to ``most`` tokens of speech per token of it."""
        embedded, ids = self.embedded(prompt, text), len(text)
        length = embedded.shape[1]
        positions = torch.arange(length, device=embedded.device)
        return Request(embedded, positions, length, int(ids * least), int(ids * most))


def official_shapes(
    config: CausalConfig, text: int, speech: int, layout: TableLayout = COSYVOICE_2
) -> dict[str, tuple[int, ...]]:
    """Names and shapes of all tensors in ``llm.pt``, for ``text`` and ``speech`` rows, including stops."""
    with without_weights():
        layers = CausalTransformer(config).state_dict()
    named = {f"{TRANSFORMER}{name}": tuple(value.shape) for name, value in layers.items()} | {
        TEXT: (text, config.hidden),
        TEXT_HEAD: (text, config.hidden),
        SPEECH: (speech, config.hidden),
        HEAD: (speech, config.hidden),
    }
    if layout.marks is None:
        named[MARKS] = (2, config.hidden)
    return named | {BIAS: (speech,)} if layout.biased else named


# Their training format: the tensors of ``llm.pt``, and a sentence as a sequence.
#
# ``prepare_lm_input_target`` of ``llm/llm.py``. Upstream also trains on sequences with interleaved text and speech, for
# texts spoken while typed; that is not supported here.


@dataclass(frozen=True)
class CosyNames:
    """Names as in ``llm.pt``. The vocabulary is text, then the marks if they have a table, then speech."""

    text: int
    """Rows of the text table."""
    layout: TableLayout = COSYVOICE_2
    layers: str = LAYERS
    head: str = HEAD

    @property
    def marks(self) -> int:
        """Rows of the marks' table."""
        return 2 if self.layout.marks is None else 0

    def parts(self, tensors: Mapping[str, Tensor]) -> Parts:
        body = {
            name.removeprefix(TRANSFORMER): value
            for name, value in tensors.items()
            if name.startswith(TRANSFORMER) and name != TEXT
        }
        embedding = torch.cat([tensors[name] for name in (TEXT, MARKS, SPEECH) if name in tensors])
        return Parts(body, embedding, tensors[HEAD], tensors.get(BIAS))

    def tensors(self, parts: Parts) -> dict[str, Tensor]:
        """As in :class:`TensorNames`, without the unused tied head of text."""
        text, marks, speech = parts.embedding.split(
            [self.text, self.marks, len(parts.embedding) - self.text - self.marks]
        )
        named = {TRANSFORMER + name: value for name, value in parts.transformer.items()}
        named |= {TEXT: text, SPEECH: speech, HEAD: parts.head}
        if self.marks:
            named[MARKS] = marks
        return named if parts.bias is None else named | {BIAS: parts.bias}

    def spoken(self, head: Tensor) -> Tensor:
        """All rows can be spoken."""
        return head

    def row(self, text: Sequence[int], speech: Sequence[int], codes: int) -> TrainingRow:
        """All of the ``text``, then all of the ``speech``, from ``codes`` possible ones."""
        first = self.text + self.marks
        start, task = (
            (self.text + START, self.text + TASK)
            if self.layout.marks is None
            else (first + codes + mark for mark in self.layout.marks)
        )
        ids = (start, *text, task, *(first + code for code in speech))
        return TrainingRow(ids, (IGNORED,) * (1 + len(text)) + (*speech, codes + self.layout.end))


def with_text_head(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Add the head of text, equal to the text table, which the official class requires."""
    return {**tensors, TEXT_HEAD: tensors[TEXT]}
