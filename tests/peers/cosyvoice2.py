"""Our language models of CosyVoice 2 and 3 against the official loop, on the same random weights of its size.

There is no official package in a registry. The loop here is the official one (``cosyvoice/llm/llm.py``,
``cosyvoice/utils/common.py`` of FunAudioLLM/CosyVoice at ace7c47) on the Qwen2 of ``transformers``, operation by
operation: every pass scores the 151,936 ids of text as well, and the nucleus is collected in a Python loop. Only the
mask of one column, which newer versions of transformers take for another, is left out; results are those of the version
that upstream pins. ``tests/parity`` compares it with recorded output of the official code. CosyVoice 3's head has no
bias, and 200 ids that end speech, all of which are masked as its vLLM engine does (its own loop masks the wrong one).
"""

import argparse
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor

from paretone.bench.masked import require_transformers
from paretone.bench.report import Report
from paretone.models.cosyvoice2.language_model import COSYVOICE_2, LanguageModel, PromptIds, TableLayout
from paretone.models.families.language_network import TokenModel
from paretone.models.networks.causal import CausalConfig
from paretone.models.networks.shapes import without_weights
from paretone.sampling.tokens import RepetitionAware
from tests.peers import language
from tests.peers.language import Peers, random_transformer

NAME = "cosyvoice2"
TOKENS = 100
PROMPT_TEXT, TEXT, PROMPT_TOKENS = 12, 14, 75
"""Of the prompt: a transcript, a sentence, and three seconds of a voice."""
NEVER = -30.0
"""Bias of the ids that end speech, so that it lasts as long as was asked for."""
TOP_P, TOP_K, WINDOW, THRESHOLD = 0.8, 25, 10, 0.1
MASKED_STOPS = 1
DEFINITION = (
    "Time of CosyVoice 2's official language-model loop over time of ours for the same tokens from the same random "
    "weights of its size, prompt included; median of paired, interleaved rounds."
)


@dataclass(frozen=True)
class Sizes:
    """Sizes of a CosyVoice 2."""

    config: CausalConfig
    text_ids: int
    codes: int
    layout: TableLayout = COSYVOICE_2


RELEASED = Sizes(
    CausalConfig(
        hidden=896,
        layers=24,
        heads=14,
        key_value_heads=2,
        head_width=64,
        feed_forward=4864,
        epsilon=1e-6,
        rope_theta=1e6,
        biased=True,
    ),
    text_ids=151_936,
    codes=6_561,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    language.add_arguments(parser, "100, 4 s")


def run(arguments: argparse.Namespace) -> Report:
    """Speak the same tokens in both."""
    require_transformers("llasa")
    return language.measure(arguments, partial(peers, RELEASED, arguments.tokens or TOKENS), DEFINITION)


def peers(sizes: Sizes, count: int, device: torch.device, precision: torch.dtype, layers: int = 0) -> Peers:
    """Both implementations, for ``count`` tokens."""
    config, codes = replace(sizes.config, layers=layers or sizes.config.layers), sizes.codes
    transformer = random_transformer(config, device, precision)

    def table(rows: int) -> Tensor:
        return torch.randn(rows, config.hidden, device=device, dtype=precision).mul_(0.02)

    layout, rows = sizes.layout, codes + sizes.layout.stops
    text, marks, speech, head = (table(rows) for rows in (sizes.text_ids, 2, rows, rows))
    bias = None
    if layout.biased:
        bias = torch.zeros(rows, device=device, dtype=precision)
        bias[codes:] = NEVER
    masked = MASKED_STOPS if layout.biased else layout.stops
    plain = TokenModel(transformer, speech, head, bias, codes=codes)
    model = LanguageModel(text, marks, plain)
    prompt = PromptIds(tuple(range(PROMPT_TEXT)), tuple(one % codes for one in range(0, 7 * PROMPT_TOKENS, 7)))
    embedded = model.embedded(prompt, tuple(range(PROMPT_TEXT, PROMPT_TEXT + TEXT)))
    official = OfficialLoop(config, transformer.state_dict(), text, speech, head, bias, codes, masked)
    length, tokens = embedded.shape[1], plain.optimised()

    def of_length(count: int) -> Peers:
        request = model.request(prompt, (0,) * TEXT)
        request = replace(
            request,
            embedded=embedded,
            positions=torch.arange(length, device=device),
            minimum=count,
            maximum=count,
            masked_stops=masked,
        )
        return Peers(
            layout.title,
            official.title,
            lambda: official.speak(embedded, count, count)[0],
            lambda: official.speak(embedded, count, count, keep=True),
            tokens,
            request,
            RepetitionAware("2026", TOP_P, TOP_K, WINDOW, THRESHOLD),
            of_length,
        )

    return of_length(count)


class OfficialLoop:
    """``Qwen2LM.inference_wrapper`` with ``Qwen2Encoder.forward_one_step`` and ``ras_sampling``."""

    def __init__(
        self,
        config: CausalConfig,
        weights: Mapping[str, Tensor],
        text: Tensor,
        speech: Tensor,
        head: Tensor,
        bias: Tensor | None,
        codes: int,
        masked: int = MASKED_STOPS,
    ) -> None:
        """``masked``: ids from the first that ends speech on, which are masked before the least length."""
        import transformers
        from transformers import Qwen2Config, Qwen2ForCausalLM

        self.title = f"the official loop on transformers {transformers.__version__}"
        upstream = Qwen2Config(
            vocab_size=len(text),
            hidden_size=config.hidden,
            intermediate_size=config.feed_forward,
            num_hidden_layers=config.layers,
            num_attention_heads=config.heads,
            num_key_value_heads=config.key_value_heads,
            head_dim=config.head_width,
            rms_norm_eps=config.epsilon,
            rope_parameters={"rope_theta": config.rope_theta, "rope_type": "default"},
            tie_word_embeddings=True,
            attn_implementation="sdpa",
        )
        with without_weights():
            model = Qwen2ForCausalLM(upstream)
        named = {f"model.{name}": value for name, value in weights.items()}
        named |= {"model.embed_tokens.weight": text, "lm_head.weight": text}
        model.load_state_dict(named, assign=True)
        # What is no weight has been made on the meta device as well.
        model.model.rotary_emb = type(model.model.rotary_emb)(upstream).to(text.device)
        self._model = model.eval().requires_grad_(False)
        self._speech, self._head, self._bias, self._end, self._masked = speech, head, bias, codes, masked

    @torch.inference_mode()
    def speak(
        self, embedded: Tensor, minimum: int, maximum: int, *, keep: bool = False, greedy: bool = False
    ) -> tuple[list[int], Tensor]:
        """Tokens after the prompt ``embedded`` (1, prompt, hidden), and the log-probabilities (tokens, ids) that the
        sampler saw if they are to be kept. ``greedy`` takes the likeliest instead of sampling."""
        torch.manual_seed(0)
        tokens: list[int] = []
        kept: list[Tensor] = []
        cache = None
        for step in range(maximum):
            done = self._model(
                inputs_embeds=embedded,
                output_hidden_states=True,
                return_dict=True,
                use_cache=True,
                past_key_values=cache,
            )
            cache = done.past_key_values
            hidden = done.hidden_states[-1][:, -1]
            scores = torch.nn.functional.linear(hidden, self._head, self._bias).log_softmax(dim=-1).squeeze(0)
            if step < minimum:
                scores[self._end : self._end + self._masked] = -math.inf
            if keep:
                kept.append(scores.clone())
            token = int(scores.argmax()) if greedy else _repetition_aware(scores, tokens)
            if token >= self._end:
                break
            tokens.append(token)
            embedded = self._speech[token].reshape(1, 1, -1)
        return tokens, torch.stack(kept) if kept else torch.empty(0)


def _repetition_aware(scores: Tensor, tokens: list[int]) -> int:
    """``ras_sampling``; ``scores`` may be changed."""
    token = _nucleus(scores)
    repeated = (torch.tensor(tokens[-WINDOW:]).to(scores.device) == token).sum().item()
    if repeated >= WINDOW * THRESHOLD:
        scores[token] = -math.inf
        token = int(scores.softmax(dim=0).multinomial(1, replacement=True).item())
    return token


def _nucleus(scores: Tensor) -> int:
    """``nucleus_sampling``: ids are collected one by one, likeliest first."""
    probabilities: list[Tensor] = []
    ids: list[Tensor] = []
    total: float | Tensor = 0.0
    values, order = scores.softmax(dim=0).sort(descending=True, stable=True)
    for index in range(len(order)):
        if not (total < TOP_P and len(probabilities) < TOP_K):
            break
        total = total + values[index]
        probabilities.append(values[index])
        ids.append(order[index])
    drawn = torch.tensor(probabilities).to(scores).multinomial(1, replacement=True)
    return int(torch.tensor(ids, dtype=torch.long).to(scores.device)[drawn].item())
