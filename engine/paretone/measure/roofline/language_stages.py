"""A language model's synthesis by component: reading the prompt, decoding and drafting passes, and the decoder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from paretone.errors import SettingError
from paretone.measure.roofline import counts, report
from paretone.measure.roofline.clock import Run, TimedComponent, TimedPhase, once
from paretone.measure.roofline.flow_stages import flow_stages
from paretone.models.families.evaluations import FlowInternals
from paretone.models.families.language import LanguageInternals
from paretone.models.families.language_network import TokenModel
from paretone.models.kernels.few_rows import FEW_ROWS, Int4Product, Int8Product
from paretone.models.kernels.fused_causal import FusedLayer, FusedTransformer
from paretone.models.kernels.graphs import GraphedTransformer
from paretone.sampling.autoregressive import Cycle, Request, places
from paretone.sampling.tokens import TokenSampler, draw


def language_stages(works: LanguageInternals, token_rate: float) -> tuple[tuple[TimedPhase, ...], float]:
    """``works`` as phases, and the audio seconds of its first passage. Decodes once to count the passes. Raises
    :class:`SettingError` for a transformer that is not optimised for decoding, or if nothing was spoken."""
    cycles = list(works.decoding)
    tokens = [token for cycle in cycles for token in cycle.tokens]
    if not tokens:
        raise SettingError("The model stopped immediately, so there is nothing to measure; try another seed.")
    request, prompt = works.request, works.request.embedded.shape[1]
    middle = prompt + len(tokens) // 2
    positions = places(request, middle)
    target, draft = works.networks.target.tokens, works.networks.draft
    per_pass = max(1, round(sum(len(one.drafted) + 1 for one in cycles) / len(cycles)))
    checking = f"{per_pass} token{'s' if per_pass > 1 else ''} after {middle}"
    stages = [
        _pass("prefill", "Reading the prompt", 1, target, request.embedded[:, :-1], positions[: prompt - 1], 0),
        _pass(
            "decode",
            "Decoding passes" if draft is None else "Verifying passes",
            len(cycles),
            target,
            target.embed(_some(tokens, per_pass))[None],
            positions[middle - 1 : middle] + torch.arange(per_pass, device=positions.device),
            middle - 1,
            _Choosing(works.sampler, tokens[: len(tokens) // 2], per_pass),
            checking,
        ),
    ]
    drafted = sum(len(one.drafted) for one in cycles)
    if draft is not None and works.draft_request is not None and drafted:
        middle = works.draft_request.embedded.shape[1] + len(tokens) // 2
        positions = places(works.draft_request, middle)
        embedded = draft.tokens.embed(_some(tokens, 1))[None]
        choosing = _Choosing(works.sampler, tokens[: len(tokens) // 2], 1)
        shape = f"1 token after {middle}"
        place = positions[middle - 1 : middle]
        stages.append(
            _pass("draft", "Drafting passes", drafted, draft.tokens, embedded, place, middle - 1, choosing, shape)
        )
    if request.complete is not None:
        shape = f"{len(tokens)} tokens"
        stages.append(once("frames", "Completing frames", report.FRAMES, partial(_complete, request, tokens), shape))
    seconds = len(tokens) / token_rate
    if works.flow is not None:
        return (*stages, *_of_flow(works.flow(tokens))), seconds
    shape = f"{len(tokens)} tokens, {seconds:.1f} s of audio, piece by piece"
    return (*stages, once("decoder", "Decoder", report.DECODER, partial(_hear, works, cycles), shape)), seconds


OF_FLOW = "flow-"
"""Begins the names of a flow's phases after a language model."""


def _of_flow(works: FlowInternals) -> Iterator[TimedPhase]:
    """The phases of a flow after the tokens, and its vocoder, over the whole passage at once."""
    for stage in flow_stages(works):
        title = "Vocoder" if stage.name == "decoder" else f"Flow: {stage.title.lower()}"
        yield replace(stage, name=f"{OF_FLOW}{stage.name}", title=title)


class _Choosing:
    """From scores to the next token."""

    def __init__(self, sampler: TokenSampler, history: Sequence[int], rows: int) -> None:
        self._sampler, self._rows = sampler, rows
        self._history = [*history, *[0] * (rows - 1)]

    def __call__(self, logits: Tensor) -> None:
        probabilities = self._sampler.probabilities(logits, self._history)
        for row in range(self._rows):
            draw(probabilities[row], 0.5)


def _pass(
    name: str,
    title: str,
    forwards: int,
    model: TokenModel,
    embedded: Tensor,
    positions: Tensor,
    context: int,
    choosing: _Choosing | None = None,
    shape: str = "",
) -> TimedPhase:
    """Pass over ``embedded`` (1, tokens, hidden) after ``context`` cached tokens; if ``choosing``, with scores."""
    launched = model.transformer
    transformer = launched.plain if isinstance(launched, GraphedTransformer) else launched
    # A prompt is never recorded, and using its cache would disturb the recordings' cache.
    launched = transformer if choosing is None else launched
    if not isinstance(transformer, FusedTransformer):
        raise SettingError("Only transformers that are optimised for decoding can be measured by component.")
    config, layers = transformer.config, transformer.fused_layers
    tokens, heads, key_heads, width = embedded.shape[1], config.heads, config.key_value_heads, config.head_width
    cache = launched.cache(context + tokens)
    generator = torch.Generator().manual_seed(0)
    for layer in range(config.layers):
        cache.extend(layer, *(_noise((1, key_heads, context, width), embedded, generator) for _ in range(2)))
    cache.advance(context)
    windows = cache.windows(tokens)
    rows = embedded[0]
    mixed = _noise((tokens, heads * width), embedded, generator)
    rotation = transformer.rotation(positions)
    query = _noise((1, key_heads, heads // key_heads * tokens, width), embedded, generator)
    mask = None
    if tokens > 1:
        late = torch.full((tokens, tokens), -torch.inf, dtype=embedded.dtype, device=embedded.device).triu(1)
        mask = torch.cat([late.new_zeros(tokens, context), late], dim=1).repeat(heads // key_heads, 1)
    split = (key_heads, heads // key_heads * tokens, width)

    def project(layer: FusedLayer, place: Tensor) -> Tensor:
        projected = layer.queries_keys_values(rows).view(1, tokens, -1, width)
        layer.turn(projected.narrow(2, 0, heads + key_heads), rotation)
        place.copy_(projected.narrow(2, heads, 2 * key_heads))
        return projected

    def attend(key: Tensor, value: Tensor) -> Tensor:
        attended = F.scaled_dot_product_attention(query, key, value, mask)
        return attended.view(1, *split).transpose(1, 2).reshape(-1, heads * width)

    def expand(layer: FusedLayer) -> Tensor:
        gate, up = layer.gate_up(rows).chunk(2, dim=-1)
        return layer.down(F.silu(gate).mul_(up))

    added = torch.zeros_like(rows)
    pieces: list[tuple[str, Run]] = []
    for one, (place, key, value) in zip(layers, windows, strict=True):
        pieces += [
            (report.NORMS, partial(one.attention_norm, rows)),
            (report.PROJECTIONS, partial(project, one, place)),
            (report.ATTENTION, partial(attend, key, value)),
            (report.PROJECTIONS, partial(one.output, mixed)),
            (report.NORMS, partial(added.add_, rows)),
            (report.NORMS, partial(one.feed_forward_norm, rows)),
            (report.FEED_FORWARD, partial(expand, one)),
            (report.NORMS, partial(added.add_, rows)),
        ]
    hidden, queries, keys = config.hidden, heads * width, key_heads * width
    activation = embedded.element_size()
    product = layers[0].queries_keys_values
    if isinstance(product, Int8Product | Int4Product) and tokens > FEW_ROWS:
        product = product.many
    weight: float = getattr(product, "weight_bytes", float(activation))
    precision = str(embedded.dtype).partition(".")[2]
    seen = context + (tokens + 1) / 2
    added_work = counts.Work(2 * tokens * hidden, 2 * 3 * activation * tokens * hidden)
    part = partial(TimedComponent, calls=config.layers, precision=precision)
    parts = [
        part(report.PROJECTIONS, counts.projections(tokens, hidden, queries, keys, activation, weight)),
        part(report.ATTENTION, counts.attention(1, tokens, queries, keys, activation, seen)),
        part(report.FEED_FORWARD, counts.feed_forward(tokens, hidden, config.feed_forward, True, activation, weight)),
        part(report.NORMS, counts.norm(2 * tokens * hidden, activation) + added_work),
    ]
    if choosing is not None:
        scores = model.logits(rows).float()
        ids = torch.zeros(tokens, dtype=torch.long, device=model.device)
        head = counts.linear(tokens, hidden, model.rows, activation, model.head_weight_bytes)
        # Penalties and filters also sort; only the softmax is counted.
        parts = [
            TimedComponent(report.EMBEDDING, counts.looked_up(tokens, hidden, 1, activation), precision=precision),
            *parts,
            TimedComponent(report.HEAD, head, precision=precision),
            TimedComponent(report.SAMPLING, counts.log_softmax(tokens * model.rows)),
        ]
        choice = ((report.HEAD, partial(model.logits, rows)), (report.SAMPLING, partial(choosing, scores)))
        pieces = [(report.EMBEDDING, partial(model.embed, ids)), *pieces, *choice]

    def forward(skip: frozenset[int] = frozenset()) -> None:
        hidden = launched(embedded, cache, positions, skip=skip)
        cache.crop(context)
        if choosing is not None:
            model.embed(ids)
            choosing(model.logits(hidden[0]).float())

    # Machine code calls no operator for a layer.
    without = range(0 if launched is transformer and transformer.is_like() else config.layers)
    each = tuple(partial(forward, frozenset({index})) for index in without)
    shape = shape or f"{tokens} tokens, {config.layers} layers of {config.hidden}, {heads} heads"
    return TimedPhase(
        name, title, forwards, tuple(parts), tuple(pieces), forward, layers=each, without=True, shape=shape
    )


def _complete(request: Request, tokens: Sequence[int]) -> None:
    """The other codes of the frames of ``tokens``, from any state: each costs the same."""
    assert request.complete is not None
    for number, token in enumerate(tokens):
        request.complete(request.embedded[0, -1], token, number, lambda: 0.5)


def _hear(works: LanguageInternals, cycles: Sequence[Cycle]) -> None:
    decoder = works.decoder()
    for cycle in cycles:
        decoder.push(cycle.codes)
    decoder.finish()


def _some(tokens: Sequence[int], number: int) -> list[int]:
    """``number`` of ``tokens``, repeated if there are fewer."""
    return [tokens[place % len(tokens)] for place in range(number)]


def _noise(shape: tuple[int, ...], like: Tensor, generator: torch.Generator) -> Tensor:
    return torch.randn(shape, generator=generator).to(like)
