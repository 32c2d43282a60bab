"""Recipe ``voice-lm`` of the bundled language model: a plain Llama over the tokens of ``voice-tokenizer``
(:mod:`paretone.training.recipes.natural_tokens`).

The alignment, which a small model cannot learn, is given by the layout: text is one phone per token, and positions
restart at the speech (:mod:`paretone.models.minis.lm_mini`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from paretone.front_end.phones import PhoneVocabulary
from paretone.models.families.training_layout import HuggingFaceNames
from paretone.models.minis.lm_mini import TOKENIZER, Layout
from paretone.models.networks.causal import CausalConfig, CausalTransformer
from paretone.models.networks.quantised_mel import SpeechTokenizer, read_quantised_mel
from paretone.training.batches import Corpus
from paretone.training.natural_corpus import NaturalClip
from paretone.training.recipes.bundled_recipe import begin_as_nothing, copy_codec, transformer_entries, write_mini
from paretone.training.spoken_tokens import VOCABULARY, TokenBatch, collate, said_tokens
from paretone.training.token_recipe import TokenData, TokenNetwork, TokenOptions, TokenRecipe, cross_entropy

SMALL_LM = CausalConfig(
    hidden=256,
    layers=12,
    heads=4,
    key_value_heads=4,
    head_width=64,
    feed_forward=640,
    epsilon=1e-5,
    rope_theta=1e4,
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
        network = untrained(architecture, self.layout)
        super().__init__(None, network, "random", data, partial(collate, layout=self.layout), device, options)

    @property
    def retained(self) -> tuple[int, ...]:
        return tuple(range(self.model.transformer.config.layers))

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
        config = _described(network.transformer.config, layout)
        write_mini(folder, network.tensors(), self.steps, config, _listed(layout))
        copy_codec(self.tokenizer, folder / TOKENIZER)


def layout_of(vocabulary: PhoneVocabulary, codes: int) -> Layout:
    """Phones, end of text, codes, start and end of speech, in this order."""
    text = len(vocabulary.phones) + 1
    return Layout(vocabulary, text - 1, text, codes, text + codes, text + codes + 1)


@torch.no_grad()
def untrained(architecture: CausalConfig, layout: Layout) -> TokenNetwork:
    """Random weights; zero output projections in each layer, so that depth needs no warm-up."""
    transformer = CausalTransformer(architecture)
    begin_as_nothing(transformer.layers)
    table = 0.5 * torch.randn(layout.ids, architecture.hidden)
    head = torch.empty_like(table).uniform_(-1, 1) * architecture.hidden**-0.5
    return TokenNetwork(transformer, table, head[layout.rows], HuggingFaceNames(layout.rows))


def _described(config: CausalConfig, layout: Layout) -> dict[str, object]:
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


def _listed(layout: Layout) -> dict[str, object]:
    return {
        "phones": " ".join(layout.vocabulary.phones),
        "end_of_text": layout.end_of_text,
        "first_code": layout.first_code,
        "codes": layout.codes,
        "start_of_speech": layout.start_of_speech,
        "end_of_speech": layout.end_of_speech,
    }
