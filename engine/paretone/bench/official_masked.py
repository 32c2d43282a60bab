"""Reference runs for masked models: the same weights run as upstream, and with its extra work removed step by step."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version

import torch
from torch import Tensor, nn

from paretone.errors import PlainError
from paretone.models.kernels.fused_masked import FusedMasked, MaskedRequest
from paretone.models.networks.masked_network import BidirectionalTransformer, MaskedConfig, MaskedNetwork, Qwen3Config
from paretone.models.networks.plain_masked import PlainRun
from paretone.models.networks.shapes import without_weights
from paretone.sampling.demasking import Canvas, Guide, Predictor, Rules, SeededCanvasNoise, demask
from paretone.sampling.demasking_schedule import Block

OFFICIAL, OWN_LAYERS, UNPADDED, EXACT = (
    "official-equivalent (Qwen3 of transformers)",
    "own layers, no cache objects",
    "+ neither padded nor scored beyond the canvas",
    "+ all exact savings",
)
"""The official way, and what comes of it as savings are added, in this order."""
FULL_SIZE = MaskedConfig(
    Qwen3Config(
        hidden=1024,
        layers=28,
        heads=16,
        key_value_heads=8,
        head_width=128,
        feed_forward=3072,
        epsilon=1e-6,
        rope_theta=1e6,
    ),
    # The table of text is looked up and nothing else: a small one of the released 151,676 rows takes the same time.
    text_vocabulary=1024,
    codebooks=8,
    entries=1025,
)
"""OmniVoice's sizes."""


def require_transformers(extra: str) -> None:
    """Raise :class:`PlainError` if a transformers of version 5 or later is not installed, which ``extra`` brings."""
    try:
        if int(version("transformers").partition(".")[0]) < 5:
            raise PackageNotFoundError
    except PackageNotFoundError:
        raise PlainError(
            "The official implementation needs the package transformers, 5 or later, which is not installed; "
            f"install it with: pip install -U paretone[{extra}]"
        ) from None


class UpstreamTransformer(nn.Module):
    """Qwen3 as ``transformers`` has it and OmniVoice runs it, caches and all, with the weights of ``plain``."""

    def __init__(self, plain: BidirectionalTransformer) -> None:
        super().__init__()
        require_transformers("omnivoice")
        from transformers import Qwen3Config as UpstreamConfig
        from transformers import Qwen3Model
        from transformers.models.qwen3.modeling_qwen3 import Qwen3RotaryEmbedding

        config = plain.config
        sizes = {
            "vocab_size": len(plain.embed_tokens.weight),
            "hidden_size": config.hidden,
            "intermediate_size": config.feed_forward,
            "num_hidden_layers": config.layers,
            "num_attention_heads": config.heads,
            "num_key_value_heads": config.key_value_heads,
            "head_dim": config.head_width,
            "rms_norm_eps": config.epsilon,
            "rope_parameters": {"rope_theta": config.rope_theta, "rope_type": "default"},
        }
        upstream = UpstreamConfig.from_dict(sizes, attn_implementation="sdpa")
        with without_weights():
            self.model = Qwen3Model(upstream)
        self.model.load_state_dict(plain.state_dict(), assign=True)
        # What is no weight has been made on the meta device as well.
        self.model.rotary_emb = Qwen3RotaryEmbedding(upstream).to(plain.norm.weight.device)
        self.model.eval().requires_grad_(False)
        self.embed_tokens = self.model.embed_tokens

    def forward(self, embedded: Tensor, positions: Tensor, mask: Tensor) -> Tensor:
        return self.model(inputs_embeds=embedded, position_ids=positions, attention_mask=mask)[0]


class UnpaddedRun:
    """Each branch separately, scored on the canvas: see :class:`paretone.sampling.demasking.Predictor`."""

    normalised = True

    def __init__(self, network: MaskedNetwork, request: MaskedRequest, guidance: float) -> None:
        self._network, self._request, self._guidance = network, request, guidance

    @torch.inference_mode()
    def scores(self, codes: Tensor, first: int, last: int, guide: Guide) -> Tensor:
        network, request = self._network, self._request
        audio = torch.cat([request.reference, codes], dim=1)[None]
        guided = network(request.text[None], audio, request.frames, request.positions)[0].log_softmax(-1)
        alone = network(request.text[None, :0], codes[None], request.frames, request.alone_positions)[0].log_softmax(-1)
        return (guided + self._guidance * (guided - alone)).log_softmax(-1)[:, first:last]


def predictors(plain: MaskedNetwork, fused: FusedMasked) -> dict[str, Callable[[MaskedRequest, float], Predictor]]:
    """Predictors of a canvas for each of the ways; ``fused`` is made of ``plain``."""
    with without_weights():
        upstream = MaskedNetwork(plain.config)
    upstream.load_state_dict(plain.state_dict(), assign=True)
    upstream.set_submodule("llm", UpstreamTransformer(plain.llm))
    return {
        OFFICIAL: lambda request, guidance: PlainRun(upstream, request, guidance),
        OWN_LAYERS: lambda request, guidance: PlainRun(plain, request, guidance),
        UNPADDED: lambda request, guidance: UnpaddedRun(plain, request, guidance),
        EXACT: fused.begin,
    }


def filled(
    begin: Callable[[MaskedRequest, float], Predictor],
    config: MaskedConfig,
    request: MaskedRequest,
    rules: Rules,
    steps: int,
    seed: int,
) -> Tensor:
    """The codes (codebooks, frames) of a canvas that is filled in from its beginning to its end."""
    device = request.text.device
    canvas = Canvas(config.codebooks, request.frames, config.mask, device)
    predictor = begin(request, rules.guidance)
    for _ in demask(predictor, canvas, Block(0, request.frames, steps), rules, SeededCanvasNoise(seed, device)):
        pass
    return canvas.codes


def random_network(config: MaskedConfig, device: torch.device) -> MaskedNetwork:
    """A network of ``config`` with random weights: as large as a released one, and saying nothing."""
    torch.manual_seed(0)
    with without_weights():
        network = MaskedNetwork(config)
    network = network.to_empty(device=device)
    with torch.no_grad():
        for name, weight in network.named_parameters():
            weight.fill_(1.0) if name.endswith("norm.weight") else weight.normal_(std=0.02)
        network.codebook_layer_offsets.copy_(torch.arange(config.codebooks) * config.entries)
    return network.eval().requires_grad_(False)


def random_request(config: MaskedConfig, text: int, reference: int, frames: int, device: torch.device) -> MaskedRequest:
    """A request with random tokens of these sizes."""
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(config.text_vocabulary, (text,), generator=generator)
    codes = torch.randint(config.mask, (config.codebooks, reference), generator=generator)
    return MaskedRequest(ids.to(device), codes.to(device), frames)
