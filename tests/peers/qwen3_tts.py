"""Our Qwen3-TTS against the official package's talker and predictor, on the same random weights of the released sizes.

Both choose the likeliest code everywhere, with the release's repetition penalty, so that no random numbers have to be
found for the codes within frames: the official loop is ``talker.generate``, which calls ``code_predictor.generate`` in
every frame. Weights are rounded to bfloat16, as published, and computed in float32 by both. The prompt stands for a
sentence in a named voice; the tables of text, which a prompt reads once, are small. Ours completes one frame more: the
official loop does not complete its last token.
"""

import argparse
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from paretone.bench.report import Report
from paretone.errors import PlainError
from paretone.models.networks.shapes import without_weights
from paretone.models.qwen3_tts.frames import FrameModel
from paretone.models.qwen3_tts.talker import FramePrompt, Talker, TalkerConfig
from paretone.sampling.autoregressive import Complete, Request
from paretone.sampling.tokens import Nucleus
from tests.peers import language, official
from tests.peers.language import Peers

NAME = "qwen3-tts"
PACKAGE = official.QWEN3_TTS
TOKENS = 25
PROMPT = 24
"""Positions of the prompt: header, language and voice, and a sentence."""
PENALTY = 1.05
SIZES = {"0.6B": (1024, 3072), "1.7B": (2048, 6144)}
"""Width and inner width of the talker."""
DEFINITION = (
    f"Time of the official qwen-tts {PACKAGE.version} (talker and predictor) over time of ours for the same codes from "
    "the same random weights of the released sizes; median of paired, interleaved rounds."
)
_LAYERS = {
    "hidden_act": "silu",
    "rms_norm_eps": 1e-6,
    "rope_theta": 1000000,
    "attention_bias": False,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "num_code_groups": 16,
    "max_position_embeddings": 32768,
}


def described(width: int, inner: int, layers: int = 28) -> dict[str, Any]:
    """``talker_config`` of a release, but for the rows of text."""
    within = {**_LAYERS, "vocab_size": 2048, "hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 5}
    sections = {"interleaved": True, "mrope_section": [24, 20, 20], "rope_type": "default", "type": "default"}
    return {
        **_LAYERS,
        "vocab_size": 3072,
        "hidden_size": width,
        "intermediate_size": inner,
        "num_hidden_layers": layers,
        "text_vocab_size": 64,
        "text_hidden_size": 2048,
        "codec_eos_token_id": 2150,
        "rope_scaling": sections,
        "code_predictor_config": within,
    }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    language.add_arguments(parser, f"{TOKENS}, {TOKENS * 0.08:.0f} s of speech")
    parser.add_argument("--size", choices=SIZES, default="0.6B", help="size of the talker (default: 0.6B)")


def run(arguments: argparse.Namespace) -> Report:
    """Speak the same codes in both, in the official package's environment."""
    if not official.inside(PACKAGE):
        return official.measured_inside(PACKAGE, NAME, arguments)
    width, inner = SIZES[arguments.size]

    def made(device: torch.device, precision: torch.dtype, layers: int) -> Peers:
        config = described(width, inner, layers or 28)
        return peers(config, arguments.tokens or TOKENS, device, precision, f"Qwen3-TTS {arguments.size}")

    return language.measure(arguments, made, DEFINITION)


def random_talker(config: TalkerConfig, device: torch.device, precision: torch.dtype) -> Talker:
    """The same random weights every time, in bfloat16's numbers."""
    with without_weights():
        made = Talker(config)
    made = made.to(precision).to_empty(device=device)
    torch.manual_seed(0)
    with torch.no_grad():
        for name, weight in made.named_parameters():
            weight.fill_(1.0) if name.endswith("norm.weight") else nn.init.normal_(weight, std=0.02)
            weight.copy_(weight.bfloat16())
    return made.eval().requires_grad_(False)


def peers(config: dict[str, Any], count: int, device: torch.device, precision: torch.dtype, title: str) -> Peers:
    """Both implementations, for ``count`` frames."""
    talker = random_talker(TalkerConfig.read(config), device, precision)
    width = talker.config.transformer.hidden
    embedded = torch.randn(PROMPT, width, device=device, dtype=precision)
    trailing = torch.randn(1, width, device=device, dtype=precision)
    prompt = FramePrompt(embedded, trailing, trailing[0])
    theirs = _Official(config, talker.state_dict(), prompt)
    model = FrameModel.of(talker)

    def completing(model: FrameModel) -> Complete:
        return model.completing(prompt, Nucleus(top_k=1))

    def of_length(count: int) -> Peers:
        positions = torch.arange(PROMPT, device=device)
        request = Request(embedded[None], positions, PROMPT, count, count, complete=completing(model))
        return Peers(
            title,
            theirs.title,
            partial(theirs.tokens, count),
            partial(theirs.scores, count),
            model,
            request,
            Nucleus(top_k=1, repetition_penalty=PENALTY),
            of_length,
            talker.config.groups,
            frames=partial(theirs.frames, count),
            completing=completing,
        )

    return of_length(count)


class _Official:
    """The official talker with its own loop."""

    def __init__(self, config: dict[str, Any], weights: dict[str, Tensor], prompt: FramePrompt) -> None:
        official.import_models(PACKAGE)
        import transformers
        from qwen_tts.core.models import configuration_qwen3_tts as configuration
        from qwen_tts.core.models import modeling_qwen3_tts as modeling

        transformers.utils.logging.set_verbosity_error()
        self.title = f"qwen-tts {PACKAGE.version}, talker.generate, transformers {transformers.__version__}"
        described = configuration.Qwen3TTSTalkerConfig(**config)
        described._attn_implementation = described.code_predictor_config._attn_implementation = "sdpa"
        model = modeling.Qwen3TTSTalkerForConditionalGeneration(described)
        missing, unexpected = model.load_state_dict(weights, strict=False, assign=True)
        if missing or unexpected:
            raise PlainError(f"The official talker has other weights: {[*missing, *unexpected][:5]}.")
        self._model = model.eval().requires_grad_(False)
        self._prompt, self._rows, self._end = prompt, config["vocab_size"], config["codec_eos_token_id"]
        self._codes = config["code_predictor_config"]["vocab_size"]

    def tokens(self, count: int) -> list[int]:
        return self._generate(count).sequences[0].tolist()

    def frames(self, count: int) -> Tensor:
        """Codes (count - 1, groups)."""
        states = self._generate(count).hidden_states
        return torch.cat([one[-1] for one in states if one[-1] is not None])

    def scores(self, count: int) -> tuple[list[int], Tensor]:
        done = self._generate(count, output_logits=True)
        scores = torch.cat(done.logits)
        spoken = torch.cat([scores[:, : self._codes], scores[:, self._end : self._end + 1]], dim=1)
        return done.sequences[0].tolist(), spoken

    @torch.inference_mode()
    def _generate(self, count: int, **more: object) -> Any:
        embedded = self._prompt.embedded[None]
        return self._model.generate(
            inputs_embeds=embedded,
            attention_mask=torch.ones(embedded.shape[:2], dtype=torch.long, device=embedded.device),
            trailing_text_hidden=self._prompt.trailing[None],
            tts_pad_embed=self._prompt.padding[None, None],
            max_new_tokens=count,
            min_new_tokens=count,
            do_sample=False,
            subtalker_dosample=False,
            repetition_penalty=PENALTY,
            eos_token_id=self._end,
            pad_token_id=self._end,
            suppress_tokens=[one for one in range(self._rows - 1024, self._rows) if one != self._end],
            output_hidden_states=True,
            return_dict_in_generate=True,
            **more,
        )
