"""Masked network for inference: :class:`paretone.models.networks.masked_network.MaskedNetwork` without redundant work.

Upstream runs both branches as a batch of two, padded to the longer one, and scores every row of both. Here:

* **rows**: the unconditional branch, which has only the canvas, is not padded; the rows of both branches are in one
  matrix and only attention separates them. There is no key-value cache, because nothing would be read from it;
* **first layer**: embeddings of text and reference, and their projections, are computed once per canvas; the canvas is
  projected once for both branches, which differ there only in their positions;
* **last layer**: only the frames to be filled in pass its feed-forward;
* **head**: it is linear, so it is applied once, to (1 + g) · conditional − g · unconditional hidden states of these
  frames. Scores then differ from log-probabilities by a constant per cell, which cancels in the softmax;
* **operators**: one product for queries, keys and values, one for gate and up; rotations are tabulated. On one or two
  threads, a pass of a small network is one call of machine code (:mod:`paretone.models.kernels.masked_call`).

Results are equal up to rounding. In precisions other than float32, products and attention compute in fewer bits; the
residual stream, norms and scores stay float32 unless the precision is one of the whole network (``…_all``).
"""

from __future__ import annotations

import copy
import functools
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from paretone.models.kernels import products
from paretone.models.kernels.attention import attend
from paretone.models.kernels.few_rows import Product
from paretone.models.kernels.masked_pass import FusedLayer, LayerSpan, PrefixMemory, Rows, Wanted
from paretone.models.kernels.precision import DTYPES, Int8Linear
from paretone.models.kernels.products import PackedProduct
from paretone.models.networks.causal import rotations
from paretone.models.networks.masked_network import BidirectionalLayer, MaskedConfig, MaskedNetwork, Qwen3Config
from paretone.sampling.demasking import Guide
from paretone.sampling.tokens import unless_numba_fails
from paretone.setting.plan import WHOLE

if TYPE_CHECKING:
    from paretone.models.kernels.masked_call import MaskedCall


@dataclass(frozen=True)
class MaskedRequest:
    """The rows before a canvas, and its length."""

    text: Tensor
    """Ids of text tokens, (text,)."""
    reference: Tensor
    """Codes (codebooks, frames) that the canvas continues; may be empty."""
    frames: int
    """Length of the canvas."""
    positions: Tensor | None = None
    """Positions of text, reference and canvas, (text + reference + frames,); ``None``: from 0."""
    alone_positions: Tensor | None = None
    """Positions of the canvas in the unconditional branch, (frames,); ``None``: from 0."""

    @property
    def prefix(self) -> int:
        return len(self.text) + self.reference.shape[1]

    def shortened(self, frames: int) -> MaskedRequest:
        """The request with only the first ``frames`` of the canvas."""
        positions, alone = self.positions, self.alone_positions
        return replace(
            self,
            frames=frames,
            positions=None if positions is None else positions[: self.prefix + frames],
            alone_positions=None if alone is None else alone[:frames],
        )

    def operations(self, config: MaskedConfig, targets: int, guide: Guide) -> float:
        """Operations of a step that scores ``targets`` frames (1 multiply-add = 2), as if no layer saved any."""
        alone = config.operations(self.frames, 0) if guide is Guide.BOTH else 0.0
        return config.operations(self.prefix + self.frames, targets) + alone


def rotated(turned: Tensor, rows: Rows) -> Tensor:
    """Rotate pairs whose parts are in the first and second half of a head."""
    return torch.addcmul(turned * rows.cosines, turned.roll(turned.shape[-1] // 2, dims=-1), rows.sines)


def fused_layer(
    layer: BidirectionalLayer,
    product: Callable[[Tensor], Product],
    inner: torch.dtype,
    stream: torch.dtype,
    share: bool,
) -> FusedLayer:
    """``layer`` with weights in the form of ``product``; norms of queries and keys in ``inner``, the others in
    ``stream``. With ``share``, the weights of ``layer`` become views of ours."""
    attention, feed_forward = layer.self_attn, layer.mlp
    heads, key_heads = attention.config.heads, attention.config.key_value_heads
    turned = attention.q_norm.weight.expand(heads, -1), attention.k_norm.weight.expand(key_heads, -1)
    return FusedLayer(
        attention_norm=layer.input_layernorm.weight.detach().to(stream),
        queries_keys_values=product(_side_by_side((attention.q_proj, attention.k_proj, attention.v_proj), share)),
        turned_norm=torch.cat(turned).detach().to(inner),
        output=product(attention.o_proj.weight.detach()),
        feed_forward_norm=layer.post_attention_layernorm.weight.detach().to(stream),
        gate_up=product(_side_by_side((feed_forward.gate_proj, feed_forward.up_proj), share)),
        down=product(feed_forward.down_proj.weight.detach()),
    )


def _side_by_side(linears: Sequence[nn.Linear], share: bool) -> Tensor:
    """Concatenated weights; with ``share``, the layers' weights become views of them."""
    weight = torch.cat([one.weight.detach() for one in linears])
    if share:
        parts = weight.split([one.out_features for one in linears])
        for one, part in zip(linears, parts, strict=True):
            one.weight = nn.Parameter(part, requires_grad=False)
    return weight


def plain_product(weight: Tensor) -> Product:
    """The product with ``weight`` (out, in) in its own precision."""
    return PackedProduct(weight) if products.can_pack(weight) else partial(F.linear, weight=weight)


def _narrow(dtype: torch.dtype, weight: Tensor) -> Product:
    narrowed = weight.to(dtype)
    return lambda x: F.linear(x.to(dtype), narrowed)


PRODUCTS: dict[str, Callable[[Tensor], Product]] = {
    "int8": lambda weight: Int8Linear(weight, None).forward,
    **{name: partial(_narrow, dtype) for name, dtype in DTYPES.items()},
}
"""Product types by precision."""


class FusedMasked:
    """The fused network. It has no parameters, so it cannot be trained or saved."""

    def __init__(
        self,
        config: MaskedConfig,
        tables: tuple[Tensor, Tensor],
        layers: Sequence[FusedLayer],
        norm: Tensor,
        head: Product,
        inner: torch.dtype,
    ) -> None:
        """``tables`` embed text and codes. Products and attention compute in ``inner``, everything else in the type of
        the tables."""
        self.config, self.inner = config, inner
        self._text_table, self._audio_table = tables
        self.layers = tuple(layers)
        self.like = norm
        """A tensor with the device and type of the residual stream: the weight of the final norm."""
        self._head = head
        self._as_one_call: Callable[[], MaskedCall | None] = lambda: None
        self._offsets = (torch.arange(config.codebooks) * config.entries)[:, None].to(norm.device)

    @classmethod
    @torch.no_grad()
    def of(cls, plain: MaskedNetwork, precision: str = "float32") -> FusedMasked:
        """``plain`` in ``precision``. In float32, weights are shared, and those of one product become adjacent; what is
        packed, or in machine code, has a copy of them as they were at its first pass."""
        whole, narrow = precision.endswith(WHOLE), precision.removesuffix(WHOLE)
        inner = DTYPES.get(narrow, torch.float32)
        stream = inner if whole else torch.float32
        product = PRODUCTS.get(narrow, plain_product)
        text, audio = (one.weight.detach().to(stream) for one in (plain.llm.embed_tokens, plain.audio_embeddings))
        # Scores decide commitment, so the head is float32 if the stream is.
        head = (product if whole else plain_product)(plain.audio_heads.weight.detach())
        made = cls(
            plain.config,
            (text, audio),
            [fused_layer(layer, product, inner, stream, share=narrow == "float32") for layer in plain.llm.layers],
            plain.llm.norm.weight.detach().to(stream),
            head,
            inner,
        )
        if precision == "float32" and made.device.type == "cpu":
            made._as_one_call = functools.cache(partial(_one_call, [*plain.llm.layers], made.layers))
        return made

    @property
    def device(self) -> torch.device:
        return self.like.device

    def begin(self, request: MaskedRequest, guidance: float) -> MaskedRun:
        """Compute the shared state of all steps of a canvas; ``guidance`` is the strength g."""
        return MaskedRun(self, request, guidance)

    def beginning(self, begin: Callable[[MaskedRequest, float], Any]) -> FusedMasked:
        """The same network with ``begin`` replaced: it returns another :class:`MaskedRun`, or the like."""
        made = copy.copy(self)
        vars(made)["begin"] = begin
        return made

    def text(self, ids: Tensor) -> Tensor:
        """Text tokens (n,) to embeddings (n, hidden)."""
        return F.embedding(ids, self._text_table)

    def audio(self, codes: Tensor) -> Tensor:
        """Codes (codebooks, frames) to embeddings (frames, hidden)."""
        return F.embedding(codes + self._offsets, self._audio_table).sum(dim=0)

    def project(self, hidden: Tensor, layer: int = 0) -> tuple[Tensor, Tensor]:
        """Projections of rows (n, hidden) by ``layer``: queries and keys (n, heads + key heads, head_width),
        normalised, not rotated; and values (n, key heads, head_width)."""
        one, config = self.layers[layer], self.config.transformer
        projected = one.queries_keys_values(self.normed(hidden, one.attention_norm))
        turned, values = projected.unflatten(-1, (-1, config.head_width)).split(
            (config.heads + config.key_value_heads, config.key_value_heads), dim=-2
        )
        return F.rms_norm(turned, (config.head_width,), None, config.epsilon) * one.turned_norm, values

    def forward(
        self,
        hidden: Tensor,
        projected: tuple[Tensor, Tensor],
        rows: Rows,
        wanted: Wanted,
        memory: PrefixMemory | None = None,
        span: LayerSpan | None = None,
    ) -> Tensor:
        """Embeddings (rows, hidden), and their projections by the first layer, to hidden states after the final norm of
        the ``wanted`` rows of each branch, in order. ``memory`` may prepend keys and values to the first branch; the
        layers of ``span`` may be replaced by their last contribution."""
        few = torch.get_num_threads() <= MOST_THREADS and not torch.compiler.is_compiling()
        if few and not rows.seen and (call := self._as_one_call()) is not None:
            return self.normed(call(hidden, projected, rows, wanted, memory, span), self.like)
        last = len(self.layers) - 1
        reused = range(0) if span is None else span.layers
        before = hidden
        for index, layer in enumerate(self.layers):
            if span is not None and index == reused.start:
                before = hidden
                hidden = hidden if span.recording else hidden + span.last(len(hidden))
            if span is not None and index in reused and not span.recording:
                continue
            turned, values = projected if index == 0 else self.project(hidden, index)
            if index == last:
                hidden = torch.cat([hidden[part][want] for part, want in zip(rows.parts, wanted, strict=True)])
            extend = None if memory is None else partial(memory, index)
            mixed = self.attended(rotated(turned, rows), values, rows, wanted if index == last else None, extend)
            hidden = hidden + layer.output(mixed)
            gate, up = layer.gate_up(self.normed(hidden, layer.feed_forward_norm)).chunk(2, dim=-1)
            hidden = hidden + layer.down(F.silu(gate) * up)
            if span is not None and index == reused.stop - 1:
                span.ran(before, hidden)
        return F.rms_norm(hidden, self.like.shape, self.like, self.config.transformer.epsilon)

    @torch.inference_mode()
    def forward_together(self, calls: Sequence[tuple[Any, ...]]) -> list[Tensor]:
        """:meth:`forward` with the arguments of each of ``calls``; those without memory and span in one pass."""
        plain = [one for one in calls if len(one) == 4]
        if len(plain) < 2:
            return [self.forward(*one) for one in calls]
        hidden, projected, rows, wanted = zip(*plain, strict=True)
        starts = itertools.accumulate([len(one) for one in hidden[:-1]], initial=0)
        parts = [
            slice(start + part.start, start + part.stop)
            for start, one in zip(starts, rows, strict=True)
            for part in one.parts
        ]
        cosines, sines = (torch.cat([getattr(one, name) for one in rows]) for name in ("cosines", "sines"))
        turned, values = (torch.cat(some) for some in zip(*projected, strict=True))
        whole = Rows(tuple(parts), cosines, sines)
        together = self.forward(torch.cat(hidden), (turned, values), whole, tuple(itertools.chain(*wanted)))
        found = iter(together.split([sum(part.stop - part.start for part in some) for some in wanted]))
        return [next(found) if len(one) == 4 else self.forward(*one) for one in calls]

    def shared(self, ask: Callable[[Any, Any], Any]) -> FusedMasked:
        """The network with shared passes (:mod:`paretone.models.families.together`), unless recorded or compiled."""
        if type(self) is not FusedMasked or {"begin", "forward"} & set(vars(self)):
            return self
        made = copy.copy(self)
        vars(made)["forward"] = lambda *given: ask(self.forward_together, given)
        return made

    def head(self, hidden: Tensor) -> Tensor:
        """Hidden states (frames, hidden) to scores (codebooks, frames, entries)."""
        return self._head(hidden).unflatten(-1, (self.config.codebooks, -1)).transpose(0, 1)

    def attended(
        self,
        turned: Tensor,
        values: Tensor,
        rows: Rows,
        wanted: Wanted | None,
        extend: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]] | None = None,
    ) -> Tensor:
        """Attention within each branch, for all rows or only those ``wanted``: (rows, heads · head_width). ``extend``
        changes the keys and values of the first branch."""
        config = self.config.transformer
        queries, keys = turned.split((config.heads, config.key_value_heads), dim=1)
        mixed = []
        for number, part in enumerate(rows.parts):
            asking = queries[part] if wanted is None else queries[part][wanted[number]]
            key, value = keys[part], values[part]
            if extend is not None and number == 0:
                key, value = extend(key, value)
            times, mask = config.heads // config.key_value_heads, rows.seen[number] if rows.seen else None
            if times > 1 and mask is not None:
                # No fast GPU kernel supports groups and a mask together.
                key, value = key.repeat_interleave(times, dim=1), value.repeat_interleave(times, dim=1)
            asking, key, value = (one.transpose(0, 1)[None] for one in (asking, key, value))
            taken = attend(asking, key, value, mask)
            mixed.append(taken[0].transpose(0, 1).flatten(1))
        return mixed[0] if len(mixed) == 1 else torch.cat(mixed)

    def normed(self, hidden: Tensor, weight: Tensor) -> Tensor:
        """Normalise, and convert to the products' type."""
        return F.rms_norm(hidden, weight.shape, weight, self.config.transformer.epsilon).to(self.inner)


LARGE = 2_000_000
"""Weights of a product from which calling operators takes no time to speak of."""
MOST_THREADS = 2
"""Threads with which torch takes no less time than one call of machine code, which uses one."""


def _one_call(plain: Sequence[BidirectionalLayer], layers: Sequence[FusedLayer]) -> MaskedCall | None:
    """A pass as machine code, with its own copy of the weights; ``None`` for large ones, and where it does not run."""
    config = plain[0].self_attn.config
    code = machine_code() if 2 * config.feed_forward * config.hidden < LARGE else None
    if code is None or config.head_width % code.BLOCK:  # Heads are read in whole blocks.
        return None
    made: MaskedCall = code.MaskedCall(config, map(_weights, plain), layers)
    return made


def _weights(layer: BidirectionalLayer) -> tuple[Tensor, ...]:
    attention, feed_forward = layer.self_attn, layer.mlp
    joined = (attention.q_proj, attention.k_proj, attention.v_proj), (feed_forward.gate_proj, feed_forward.up_proj)
    inward, wide = (_side_by_side(some, share=False) for some in joined)
    return inward, attention.o_proj.weight.detach(), wide, feed_forward.down_proj.weight.detach()


@unless_numba_fails("Passes run in torch, slower")
def machine_code() -> ModuleType | None:
    """:mod:`paretone.models.kernels.masked_call`, if its code can be compiled here and is right; ``None`` for
    processors without wide vector registers, on which it is no faster."""
    from paretone.models.kernels import masked_call

    if not masked_call.WIDE:
        return None
    transformer = Qwen3Config(64, 2, 2, 1, masked_call.BLOCK, 96, 1e-6, 1e4)
    with torch.random.fork_rng(devices=[]), torch.inference_mode():
        torch.manual_seed(0)
        plain = MaskedNetwork(MaskedConfig(transformer, text_vocabulary=4, codebooks=1, entries=3))
        network = FusedMasked.of(plain)
        call = masked_call.MaskedCall(transformer, map(_weights, plain.llm.layers), network.layers)
        network._as_one_call = lambda: None
        hidden, parts = torch.randn(7, 64), (slice(0, 4), slice(4, 7))
        rows = _rows(network, parts, torch.tensor([0, 1, 2, 3, 0, 1, 2]))
        given = hidden, network.project(hidden), rows, (slice(1, 4), torch.tensor([0, 2]))
        if not torch.allclose(network.normed(call(*given), network.like), network.forward(*given), atol=1e-4):
            raise ArithmeticError("its results are wrong")
    return masked_call


class MaskedRun:
    """A network on one canvas, with the state shared by all steps. See
    :class:`paretone.sampling.demasking.Predictor`."""

    normalised = False

    @torch.inference_mode()
    def __init__(self, network: FusedMasked, request: MaskedRequest, guidance: float) -> None:
        self._network, self._request, self._guidance = network, request, guidance
        self.operations = 0.0
        """Operations of all steps so far; see :meth:`MaskedRequest.operations`."""
        self.whole_operations = 0.0
        """Operations of all steps so far if all had been complete."""
        self._prefix = torch.cat([network.text(request.text), network.audio(request.reference)])
        self._prefix_projected = network.project(self._prefix)
        rows, device = request.prefix + request.frames, network.device
        positions = torch.arange(rows, device=device) if request.positions is None else request.positions
        alone = request.alone_positions
        if alone is None:
            alone = torch.arange(request.frames, device=device)
        both = torch.cat([positions, alone])
        self._guided = _rows(network, (slice(0, rows), slice(rows, rows + request.frames)), both)
        self._unguided = _rows(network, (slice(0, rows),), positions)
        self._difference: tuple[tuple[int, int], Tensor] | None = None
        self.memory: PrefixMemory | None = None
        self._span: LayerSpan | None = None

    @property
    def rows(self) -> tuple[int, int]:
        """Rows of a pass without the unconditional branch, and with it."""
        return self._unguided.parts[0].stop, self._guided.parts[-1].stop

    def branches(self, guide: Guide) -> Rows:
        return self._guided if guide is Guide.BOTH and self._guidance else self._unguided

    def rows_of(self, guide: Guide) -> int:
        return self.branches(guide).parts[-1].stop

    def rows_of_last(self, guide: Guide) -> int:
        return self.rows_of(guide)

    def begin_block(self) -> None:
        """Prepare for the first step of a block."""

    short_name = short_title = ""
    """What short passes leave out, as a name and for people: ``text kept``."""

    @property
    def left_out(self) -> range:
        return range(0)

    @property
    def kept_rows(self) -> int:
        """Number of rows before the canvas whose kept keys and values short passes use."""
        return 0

    def short_passes(self, guides: Sequence[Guide]) -> list[bool]:
        """Whether each pass of a block with these ``guides`` is short."""
        return [False] * len(guides)

    def stay_short(self) -> None:
        """Make all further passes short where possible, to time them."""

    def scores(self, codes: Tensor, first: int, last: int, guide: Guide) -> Tensor:
        guide = self._possible(guide, first, last)
        self._count(last - first, guide)
        if guide is Guide.BOTH:
            conditional, alone = self.hidden(codes, first, last, self._guided).chunk(2)
            self._difference = (first, last), conditional - alone
        else:
            conditional = self.hidden(codes, first, last, self._unguided)
        if guide is not Guide.ALONE:
            conditional = conditional + self._guidance * self._last_difference()
        return self._network.head(conditional)

    def _last_difference(self) -> Tensor:
        """Last computed difference of the branches, (frames, hidden)."""
        if self._difference is None:
            raise ValueError("Guidance can be used again only once there has been some.")
        return self._difference[1]

    def _count(self, targets: int, guide: Guide) -> None:
        self.operations += self._cost(targets, guide)
        self.whole_operations += self._request.operations(self._network.config, targets, guide)

    def _cost(self, targets: int, guide: Guide) -> float:
        return self._request.operations(self._network.config, targets, guide)

    def _possible(self, guide: Guide, first: int, last: int) -> Guide:
        """``guide`` where possible: without strength there is none, and other frames' difference cannot be reused."""
        if self._guidance == 0:
            return Guide.ALONE
        fits = self._difference is not None and self._difference[0] == (first, last)
        return Guide.BOTH if guide is Guide.REUSED and not fits else guide

    def hidden(self, codes: Tensor, first: int, last: int, rows: Rows) -> Tensor:
        """Hidden states of the frames from ``first`` to ``last`` in each branch of ``rows``."""
        canvas = self._network.audio(codes[:, : self._request.frames])
        projected = self._network.project(canvas)
        again = len(rows.parts) - 1
        embedded = torch.cat([self._prefix, canvas, *[canvas] * again])
        turned, values = (
            torch.cat([before, new, *[new] * again])
            for before, new in zip(self._prefix_projected, projected, strict=True)
        )
        wanted = self.wanted(rows, first, last)
        # Compiled forwards take neither memory nor span.
        kept = () if self.memory is None and self._span is None else (self.memory, self._span)
        return self._network.forward(embedded, (turned, values), rows, wanted, *kept)

    def wanted(self, rows: Rows, first: int, last: int) -> Wanted:
        """Rows of each branch for the frames from ``first`` to ``last``."""
        return rows.wanted(first, last, self._request.frames)


def _rows(network: FusedMasked, parts: tuple[slice, ...], positions: Tensor) -> Rows:
    cosines, sines = rotations(network.config.transformer, positions, network.like)
    half = sines.shape[-1] // 2
    signed = torch.cat([-sines[:, :half], sines[:, half:]], dim=-1)
    return Rows(parts, cosines[:, None].to(network.inner), signed[:, None].to(network.inner))
