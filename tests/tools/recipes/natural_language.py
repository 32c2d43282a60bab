"""Recipes over tokens of natural speech, whose alignment, which a small model cannot learn, is given by the layout.

``voice-lm``: a plain Llama over the tokens of ``voice-tokenizer``. Text is one phone per token, and positions restart
at the speech (:mod:`paretone.models.minis.lm_mini`).

``voice-omni``: a small OmniVoice network over the codes of ``voice-codec`` (:mod:`paretone.models.minis.omni_mini`),
with the official names. It is trained on canvases: utterances with some cells hidden, as demasking meets them.
Demasking knows the voice's recording; in blockwise streaming also everything before the block; and within the canvas or
block the committed cells, mostly of lower codebooks because of the layer penalty. Nothing is known after a block.
Training items are drawn of all these kinds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from paretone.front_end.phones import PhoneVocabulary
from paretone.models.families.language_network import HuggingFaceNames
from paretone.models.files.checkpoints import fingerprint
from paretone.models.minis.lm_mini import TOKENIZER
from paretone.models.minis.lm_mini import Layout as LmLayout
from paretone.models.minis.omni_mini import CODEC, Layout, positions
from paretone.models.networks.causal import CausalConfig, CausalTransformer
from paretone.models.networks.masked_network import MaskedConfig, MaskedNetwork, Qwen3Config
from paretone.models.networks.quantised_mel import WEIGHT_FILE, ResidualCodec, SpeechTokenizer, read_quantised_mel
from paretone.observer import may_stop
from paretone.training.batches import Corpus, held_out_pairs, moved
from paretone.training.learner import LayerMatrices
from paretone.training.natural_corpus import NaturalClip
from paretone.training.spoken_tokens import VOCABULARY, SpokenTokens, TokenBatch, collate, said_tokens
from paretone.training.token_recipe import TokenData, TokenNetwork, TokenOptions, TokenRecipe, cross_entropy
from tests.engine.small_omni_mini import described
from tests.tools.recipes.bundled_recipe import (
    BundledOptions,
    BundledRecipe,
    begin_as_nothing,
    copy_codec,
    transformer_entries,
    write_mini,
)

SMALL_LM = CausalConfig(
    hidden=256, layers=12, heads=4, key_value_heads=4, head_width=64, feed_forward=640, epsilon=1e-5, rope_theta=1e4
)


@dataclass(frozen=True)
class LmOptions(TokenOptions):
    positions: int = 2_800
    matrix_rate: float | None = 0.02
    other_rate: float = 1.5e-3
    warm_up: int = 100
    average_decay: float = 0.998


class NaturalLm(TokenRecipe[TokenNetwork]):
    """Trains a language model from random weights; see :class:`paretone.training.session.Recipe`."""

    name = "voice-lm"

    def __init__(
        self,
        corpus: Corpus[NaturalClip],
        tokenizer: Path,
        work: Path,
        device: torch.device,
        options: LmOptions = LmOptions(),
        architecture: CausalConfig = SMALL_LM,
    ) -> None:
        """``tokenizer``: folder of an exported speech tokenizer; the corpus's tokens are cached in ``work``."""
        self.tokenizer = tokenizer
        model = read_quantised_mel(tokenizer, SpeechTokenizer, device)
        training, held_out = said_tokens(corpus, model, tokenizer, work)
        data = TokenData(training, held_out, f"{corpus.source}, {corpus.seconds / 3600:.2f} h")
        self.layout = layout_of(VOCABULARY, model.config.codes)
        torch.manual_seed(options.seed)
        network = untrained_lm(architecture, self.layout)
        layers, in_layout = range(architecture.layers), partial(collate, layout=self.layout)
        super().__init__(network, layers, "random", data, in_layout, device, options)

    def losses(self, batch: TokenBatch) -> tuple[Tensor, dict[str, float]]:
        loss = cross_entropy(self.model(batch).logits, batch.labels[batch.predicting])
        return loss, {}

    def figures(self, batch: TokenBatch) -> dict[str, Tensor]:
        """Cross-entropy in nats, and the shares of spoken tokens ranked first and among the top ten."""
        logits, spoken = self.average.module(batch).logits.float(), batch.labels[batch.predicting]
        ten = logits.topk(10, dim=-1).indices
        return {
            "cross_entropy": torch.nn.functional.cross_entropy(logits, spoken, reduction="none"),
            "first": (ten[:, 0] == spoken).float(),
            "among_ten": (ten == spoken[:, None]).any(-1).float(),
        }

    def export(self, folder: Path) -> None:
        """Write a folder that :class:`paretone.models.minis.lm_mini.LmMiniFolder` and transformers read."""
        network, layout = self.average.module, self.layout
        config = _lm_config(network.transformer.config, layout)
        write_mini(folder, network.tensors(), self.steps, config, _listed(layout))
        copy_codec(self.tokenizer, folder / TOKENIZER)


def layout_of(vocabulary: PhoneVocabulary, codes: int) -> LmLayout:
    """Phones, end of text, codes, start and end of speech, in this order."""
    text = len(vocabulary.phones) + 1
    return LmLayout(vocabulary, text - 1, text, codes, text + codes, text + codes + 1)


@torch.no_grad()
def untrained_lm(architecture: CausalConfig, layout: LmLayout) -> TokenNetwork:
    """Random weights; zero output projections in each layer, so that depth needs no warm-up."""
    transformer = CausalTransformer(architecture)
    begin_as_nothing(transformer.layers)
    table = 0.5 * torch.randn(layout.ids, architecture.hidden)
    head = torch.empty_like(table).uniform_(-1, 1) * architecture.hidden**-0.5
    return TokenNetwork(transformer, table, head[layout.rows], HuggingFaceNames(layout.rows))


def _lm_config(config: CausalConfig, layout: LmLayout) -> dict[str, object]:
    """``config.json`` as transformers reads it."""
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        **transformer_entries(config),
        "vocab_size": layout.ids,
        "tie_word_embeddings": False,
        "mlp_bias": False,
        "bos_token_id": layout.start_of_speech,
        "eos_token_id": layout.end_of_speech,
    }


def _listed(layout: LmLayout) -> dict[str, object]:
    ids = {name: value for name, value in vars(layout).items() if name != "vocabulary"}
    return {"phones": " ".join(layout.vocabulary.phones), **ids}


LEAST, EXTENT = 0.03, 1.07
"""Start and range of ``u``; values above one count as one: demasking begins with everything hidden."""


@dataclass(frozen=True)
class CanvasOptions:
    text_dropped: float = 0.12
    """Share of items without text and prompt, for guidance."""
    begun: float = 0.3
    """Share of items known up to a random frame after the prompt."""
    ended: float = 0.25
    """Share of items that end before a random frame, with nothing known after it."""


@dataclass(frozen=True)
class Canvases:
    """Sequences of a batch, each a text and a canvas of ``n`` frames."""

    text: Tensor
    """(B, n) int64."""
    codes: Tensor
    """(B, codebooks, n) int64 network input, the mask id in hidden cells."""
    spoken: Tensor
    """(B, codebooks, n) int64 true codes."""
    hidden: Tensor
    """(B, codebooks, n) bool: cells to predict."""
    seen: Tensor
    """(B, 2 · n) bool: attended positions of text and canvas."""

    @property
    def positions(self) -> Tensor:
        """(2 · n,)."""
        return positions(self.text.shape[1]).to(self.text.device)

    def to(self, device: torch.device) -> Canvases:
        return moved(self, device)


@dataclass(frozen=True)
class Joined:
    """Padded items: an utterance, or a prompt and an utterance of one voice."""

    text: Tensor
    """(B, n) int64."""
    codes: Tensor
    """(B, codebooks, n) int64."""
    inside: Tensor
    """(B, n) bool: false in the padding."""
    prompts: Tensor
    """(B,) frames of the prompts, 0 without a prompt."""

    @classmethod
    def of(cls, items: Sequence[Sequence[SpokenTokens]]) -> Joined:
        """The last utterance of an item follows the others as its prompt."""
        lengths = [sum(one.frames for one in item) for item in items]
        shape = (len(items), max(lengths))
        text = torch.zeros(shape, dtype=torch.long)
        codes = torch.zeros(*shape, items[0][0].codes.shape[1], dtype=torch.long)
        for row, item in enumerate(items):
            text[row, : lengths[row]] = torch.from_numpy(np.concatenate([one.phones for one in item]).astype(np.int64))
            codes[row, : lengths[row]] = torch.from_numpy(np.concatenate([one.codes for one in item]).astype(np.int64))
        inside = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
        prompts = torch.tensor([sum(one.frames for one in item[:-1]) for item in items])
        return cls(text, codes.transpose(1, 2).contiguous(), inside, prompts)

    def hiding(self, hidden: Tensor, mask: int, text_seen: Tensor | None = None) -> Canvases:
        """Canvases with ``hidden`` (B, codebooks, n) masked. Items with ``text_seen`` (B,) false see neither text nor
        prompt."""
        text_seen = torch.ones(len(self.text), dtype=torch.bool) if text_seen is None else text_seen
        after_prompt = torch.arange(self.text.shape[1]) >= self.prompts[:, None]
        canvas = self.inside & (after_prompt | text_seen[:, None])
        seen = torch.cat([self.inside & text_seen[:, None], canvas], dim=1)
        return Canvases(self.text, torch.where(hidden, mask, self.codes), self.codes, hidden, seen)


def draw(joined: Joined, mask: int, options: CanvasOptions, generator: torch.Generator) -> Canvases:
    """Hide a share of the cells after the prompts: sin(π u / 2) for a uniform ``u``; in some items all. Cells of higher
    codebooks are hidden before those of lower ones, with a strictness that varies by item."""
    items, codebooks, frames = joined.codes.shape

    def uniform(*shape: int) -> Tensor:
        return torch.rand(items, *shape, generator=generator)

    lengths = joined.inside.sum(1)
    first = joined.prompts + (uniform() * (uniform() < options.begun) * (lengths - joined.prompts)).long()
    ahead = 1 + (uniform() * (lengths - first)).long()
    last = torch.where(uniform() < options.ended, first + ahead, lengths)
    places = torch.arange(frames)
    block = joined.inside & (places >= first[:, None]) & (places < last[:, None])
    after = joined.inside & (places >= last[:, None])
    cells = block[:, None].expand(-1, codebooks, -1).flatten(1)
    share = torch.sin((LEAST + EXTENT * uniform()).clamp(max=1) * math.pi / 2)
    count = (share * cells.sum(1)).ceil().long()
    order = uniform(codebooks, frames) + uniform(1, 1) * torch.arange(codebooks)[:, None]
    order = order.flatten(1).masked_fill(~cells, -1.0)
    threshold = order.sort(dim=1, descending=True).values.gather(1, count[:, None] - 1)
    chosen = (cells & (order >= threshold)).unflatten(1, (codebooks, frames))
    return joined.hiding(chosen | after[:, None], mask, uniform() >= options.text_dropped)


def layer(joined: Joined, mask: int, codebook: int) -> Canvases:
    """Canvases with prompts and all lower codebooks known, everything else hidden."""
    hidden = joined.inside & (torch.arange(joined.text.shape[1]) >= joined.prompts[:, None])
    higher = torch.arange(joined.codes.shape[1])[:, None] >= codebook
    return joined.hiding(hidden[:, None] & higher, mask)


SMALL_OMNI = Qwen3Config(
    hidden=256, layers=8, heads=4, key_value_heads=2, head_width=64, feed_forward=640, epsilon=1e-6, rope_theta=1e4
)
LAYOUT = Layout(VOCABULARY)
CODEBOOK_WEIGHTS = (8, 8, 6, 6, 4, 4, 2, 2)
"""Loss weights of the codebooks, as in the official configuration."""


@dataclass(frozen=True)
class OmniOptions(BundledOptions):
    frames: int = 1_200
    joined_share: float = 0.7
    average_decay: float = 0.998
    validation_items: int = 12
    canvas: CanvasOptions = field(default_factory=CanvasOptions)


class PhonePairs(nn.Module):
    """Table of text tokens in training: the sum of a first and a second phone's embedding, so that rare pairs are
    learned from their phones."""

    def __init__(self, phones: int, width: int) -> None:
        super().__init__()
        self.first, self.second = nn.Embedding(phones, width), nn.Embedding(phones, width)

    def forward(self, ids: Tensor) -> Tensor:
        """(B, n) to (B, n, width)."""
        phones = self.first.num_embeddings
        return self.first(ids // phones) + self.second(ids % phones)

    @property
    def weight(self) -> Tensor:
        """(phones², width): the table as exported."""
        return (self.first.weight[:, None] + self.second.weight).flatten(0, 1)


class NaturalOmni(BundledRecipe[OmniOptions, SpokenTokens, MaskedNetwork]):
    """Trains a masked model from random weights; see :class:`paretone.training.session.Recipe`."""

    name = "voice-omni"
    layers = LayerMatrices("layers.")
    term = "loss"

    def __init__(
        self,
        corpus: Corpus[NaturalClip],
        codec: Path,
        work: Path,
        device: torch.device,
        options: OmniOptions = OmniOptions(),
        architecture: Qwen3Config = SMALL_OMNI,
    ) -> None:
        """``codec``: folder of an exported codec; the corpus's codes are cached in ``work``."""
        self.codec = codec
        self._codec_fingerprint = fingerprint(codec / WEIGHT_FILE)
        model = read_quantised_mel(codec, ResidualCodec, device)
        clips, self._held_out = said_tokens(corpus, model, codec, work, LAYOUT.text)
        sizes = model.config
        weights = torch.tensor(CODEBOOK_WEIGHTS[: sizes.codebooks], dtype=torch.float32, device=device)
        self._weights = weights / weights.sum()
        torch.manual_seed(options.seed)
        config = MaskedConfig(architecture, LAYOUT.tokens, sizes.codebooks, sizes.codes + 1)
        network = untrained(config, LAYOUT)
        super().__init__(corpus, clips, network, device, options)

    def describe(self) -> dict[str, Any]:
        frames = sum(one.frames for one in self.clips)
        return {**super().describe(), "frames": frames, "codec": self._codec_fingerprint}

    def loss(self, items: list[list[SpokenTokens]]) -> Tensor:
        canvases = draw(Joined.of(items), self.model.config.mask, self.options.canvas, self.generator).to(self.device)
        scores, spoken = self._scores(self.model, canvases)
        errors = functional.cross_entropy(scores, spoken, reduction="none")
        weights = self._weights[canvases.hidden.nonzero()[:, 1]]
        return (weights * errors).sum() / weights.sum()

    def _scores(self, network: MaskedNetwork, canvases: Canvases) -> tuple[Tensor, Tensor]:
        """Scores (n, entries) of the hidden cells, and their true codes (n,)."""
        with self.autocast():
            frames = canvases.text.shape[1]
            scores = network(canvases.text, canvases.codes, frames, canvases.positions, canvases.seen)
        hidden = canvases.hidden
        return scores[hidden].float(), canvases.spoken[hidden]

    @torch.no_grad()
    def validate(self) -> dict[str, float]:
        """On held-out utterances after a prompt, codebook by codebook with all lower ones known: cross-entropy in nats,
        and top-1 accuracy of the first and second codebooks."""
        network, errors, known = self.average.module, [], []
        for codebook in range(network.config.codebooks):
            scores, spoken = zip(*(self._layer(network, joined, codebook) for joined in self._validation), strict=True)
            scores, spoken = torch.cat(scores), torch.cat(spoken)
            errors.append(float(functional.cross_entropy(scores, spoken)))
            known.append(float((scores.argmax(-1) == spoken).float().mean()))
        return {"cross_entropy": float(np.mean(errors)), "first": known[0], "second": known[1]}

    def _layer(self, network: MaskedNetwork, joined: Joined, codebook: int) -> tuple[Tensor, Tensor]:
        may_stop()
        canvases = layer(joined, network.config.mask, codebook).to(self.device)
        only = torch.zeros_like(canvases.hidden)
        only[:, codebook] = canvases.hidden[:, codebook]
        return self._scores(network, Canvases(**{**vars(canvases), "hidden": only}))

    @cached_property
    def _validation(self) -> list[Joined]:
        return [Joined.of(items) for items in held_out_pairs(self._held_out, self.options.validation_items, 6)]

    def export(self, folder: Path) -> None:
        """Write a folder that :class:`paretone.models.minis.omni_mini.OmniMiniFolder` reads."""
        network = self.average.module
        config = _described(network.config)
        write_mini(folder, official_tensors(network), self.steps, config, described(LAYOUT))
        copy_codec(self.codec, folder / CODEC)


@torch.no_grad()
def untrained(config: MaskedConfig, layout: Layout) -> MaskedNetwork:
    """Random weights; zero output projections in each layer, so that depth needs no warm-up."""
    network = MaskedNetwork(config)
    width, phones = config.transformer.hidden, len(layout.vocabulary.phones)
    pairs = PhonePairs(phones, width)
    network.llm.set_submodule("embed_tokens", pairs)
    for table in (pairs.first, pairs.second):
        table.weight.normal_(std=0.35)
    network.audio_embeddings.weight.normal_(std=0.25)
    network.audio_heads.weight.uniform_(-1, 1).mul_(width**-0.5)
    begin_as_nothing(network.llm.layers)
    return network


def official_tensors(network: MaskedNetwork) -> dict[str, Tensor]:
    """Tensors by official names in float16, with the merged table of text tokens."""
    table = "llm.embed_tokens"
    tensors = {name: value for name, value in network.state_dict().items() if not name.startswith(f"{table}.")}
    tensors[f"{table}.weight"] = network.llm.embed_tokens.weight.detach()
    return {
        name: (value.half() if value.is_floating_point() else value).cpu().contiguous()
        for name, value in tensors.items()
    }


def _described(config: MaskedConfig) -> dict[str, object]:
    """``config.json`` in OmniVoice's layout."""
    sizes = config.transformer
    return {
        "architectures": ["OmniVoice"],
        "model_type": "omnivoice",
        "audio_vocab_size": config.entries,
        "audio_mask_id": config.mask,
        "num_audio_codebook": config.codebooks,
        "audio_codebook_weights": list(CODEBOOK_WEIGHTS[: config.codebooks]),
        "llm_config": {
            "model_type": "qwen3",
            "vocab_size": config.text_vocabulary,
            **transformer_entries(sizes),
            "tie_word_embeddings": True,
        },
    }
