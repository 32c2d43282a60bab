"""Our LLaSA against transformers' ``generate`` with a static cache, on the same random weights of Llama 1B's size.

Both sample as LLaSA's card says, at temperature 0.8 among the 50 likeliest, which is ``generate``'s own default. The
official table has 193,800 rows, all of which ``generate`` scores; ours has those of speech. The random rows of text are
a tenth as long as those of speech, so that no text is ever among the likeliest, as after training.
"""

import argparse
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from paretone.bench.masked import require_transformers
from paretone.bench.report import Report
from paretone.models.families.language_network import TokenModel
from paretone.models.networks.causal import CausalConfig, Llama3Scaling
from paretone.models.networks.shapes import without_weights
from paretone.sampling.autoregressive import Request
from paretone.sampling.tokens import Nucleus
from tests.peers import language
from tests.peers.language import Peers, random_transformer

NAME = "llasa"
TOKENS = 60
TEMPERATURE, TOP_K = 0.8, 50
TEXT_ROWS, REFERENCE_CODES = 80, 100
"""Of the prompt: the chat template with both texts, and two seconds of a voice."""
SHORTER = 0.1
"""Length of the rows of text to that of the rows of speech."""
DEFINITION = (
    "Time of transformers' generate (static cache) over time of ours for the same tokens from the same random weights "
    "of LLaSA 1B's size, prompt included; median of paired, interleaved rounds."
)


@dataclass(frozen=True)
class Sizes:
    """Sizes of a LLaSA."""

    config: CausalConfig
    rows: int
    """Of the official table."""
    first_code: int
    codes: int
    end: int
    """The official id that ends speech."""


RELEASED = Sizes(
    CausalConfig(
        hidden=2048,
        layers=16,
        heads=32,
        key_value_heads=8,
        head_width=64,
        feed_forward=8192,
        epsilon=1e-5,
        rope_theta=5e5,
        rope_scaling=Llama3Scaling(32.0, 1.0, 4.0, 8192),
    ),
    rows=193_800,
    first_code=128_264,
    codes=65_536,
    end=128_261,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    language.add_arguments(parser, "60, 1.2 s of speech")


def run(arguments: argparse.Namespace) -> Report:
    """Speak the same tokens in both."""
    require_transformers("llasa")
    return language.measure(arguments, partial(peers, RELEASED, arguments.tokens or TOKENS), DEFINITION)


def peers(sizes: Sizes, count: int, device: torch.device, precision: torch.dtype, layers: int = 0) -> Peers:
    """Both implementations, for ``count`` tokens."""
    config = replace(sizes.config, layers=layers or sizes.config.layers)
    transformer = random_transformer(config, device, precision)
    table = torch.randn(sizes.rows, config.hidden, device=device, dtype=precision).mul_(0.02)
    table[: sizes.first_code] *= SHORTER
    rows = torch.tensor([*range(sizes.first_code, sizes.first_code + sizes.codes), sizes.end], device=device)
    spoken = table[rows]
    text = torch.randint(min(sizes.first_code, sizes.end), (TEXT_ROWS,), device=device)
    codes = torch.randint(sizes.codes, (REFERENCE_CODES,), device=device)
    prompt = torch.cat([text, codes + sizes.first_code])
    official = _Official(sizes, config, transformer.state_dict(), table, prompt)
    length = len(prompt)
    tokens = TokenModel(transformer, spoken, spoken, codes=sizes.codes).optimised()

    def of_length(count: int) -> Peers:
        request = Request(table[prompt][None], torch.arange(length, device=device), length, count, count)
        return Peers(
            "LLaSA 1B",
            official.title,
            lambda: official.tokens(count),
            lambda: official.scores(count),
            tokens,
            request,
            Nucleus(TEMPERATURE, TOP_K),
            of_length,
        )

    return of_length(count)


class _Official:
    """transformers' own model and loop."""

    def __init__(
        self, sizes: Sizes, config: CausalConfig, weights: dict[str, Tensor], table: Tensor, prompt: Tensor
    ) -> None:
        import transformers
        from transformers import LlamaConfig, LlamaForCausalLM

        transformers.utils.logging.set_verbosity_error()
        self.title = f"transformers {transformers.__version__}, generate, static cache"
        scaling = config.rope_scaling
        rope: dict[str, object] = {"rope_type": "default", "rope_theta": config.rope_theta}
        if scaling is not None:
            rope |= {
                "rope_type": "llama3",
                "factor": scaling.factor,
                "low_freq_factor": scaling.low_frequency_factor,
                "high_freq_factor": scaling.high_frequency_factor,
                "original_max_position_embeddings": scaling.original_length,
            }
        upstream = LlamaConfig(
            vocab_size=sizes.rows,
            hidden_size=config.hidden,
            intermediate_size=config.feed_forward,
            num_hidden_layers=config.layers,
            num_attention_heads=config.heads,
            num_key_value_heads=config.key_value_heads,
            head_dim=config.head_width,
            rms_norm_eps=config.epsilon,
            rope_parameters=rope,
            max_position_embeddings=131_072,
            tie_word_embeddings=True,
            eos_token_id=sizes.end,
            pad_token_id=sizes.end,
            bos_token_id=None,
            attn_implementation="sdpa",
        )
        with without_weights():
            model = LlamaForCausalLM(upstream)
        named = {f"model.{name}": value for name, value in weights.items()}
        named |= {"model.embed_tokens.weight": table, "lm_head.weight": table}
        model.load_state_dict(named, assign=True)
        # What is no weight has been made on the meta device as well.
        model.model.rotary_emb = type(model.model.rotary_emb)(upstream).to(table.device)
        self._model, self._sizes, self._prompt = model.eval().requires_grad_(False), sizes, prompt[None]
        self._options = {
            "attention_mask": torch.ones_like(self._prompt),
            "do_sample": True,
            "temperature": TEMPERATURE,
            "top_k": TOP_K,
            "top_p": 1.0,
            "cache_implementation": "static",
        }

    def tokens(self, count: int) -> list[int]:
        return self._local(self._generate(count)[0])

    def scores(self, count: int) -> tuple[list[int], Tensor]:
        done = self._generate(count, return_dict_in_generate=True, output_logits=True)
        first, codes = self._sizes.first_code, self._sizes.codes
        scores = torch.cat(done.logits)
        return self._local(done.sequences[0]), torch.cat(
            [scores[:, first : first + codes], scores[:, self._sizes.end : self._sizes.end + 1]], dim=1
        )

    def _generate(self, count: int, **more: object) -> Any:
        torch.manual_seed(0)
        options = {**self._options, "min_new_tokens": count, "max_new_tokens": count, **more}
        return self._model.generate(self._prompt, **options)

    def _local(self, sequence: Tensor) -> list[int]:
        """Local ids of what follows the prompt."""
        return [int(one) - self._sizes.first_code for one in sequence[self._prompt.shape[1] :]]
