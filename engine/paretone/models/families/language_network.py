"""Networks of a language model: its own, pruned and student ones, and drafts, made on demand.

Each is a :class:`TokenModel`: a transformer between two tables of speech tokens. Ids are local: codes from 0, then the
stop ids. An adapter cuts these rows out of its model's tables, so that no pass computes scores of text, and maps them
to official ids.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from paretone.errors import CheckpointError, SettingError
from paretone.last_used import LastUsed
from paretone.models.base import DraftWeights, FeatureDraftWeights, StudentWeights
from paretone.models.families import parts
from paretone.models.families.together import Ask
from paretone.models.files.checkpoints import loaded_strictly, read_weights
from paretone.models.kernels.few_rows import BlockProduct, Product, compiling, product
from paretone.models.kernels.fused_causal import FusedLayer, FusedTransformer, QuickNorm
from paretone.models.kernels.graphs import GraphCache, GraphedTransformer
from paretone.models.networks.causal import CausalLayer, CausalTransformer
from paretone.models.networks.feature_draft import FeatureDraft
from paretone.observer import SILENT, Check, Observer
from paretone.sampling.autoregressive import Request
from paretone.sampling.cache import KeyValueCache, Limits, Prefixes
from paretone.sampling.tokens import TokenSampler, Truncation
from paretone.sampling.verification import Rule
from paretone.setting.plan import InnerDrafts, LanguagePlan, Part

if TYPE_CHECKING:
    from paretone.models.kernels.one_call import Draft

IGNORED = -100
"""Label of a position that is not predicted."""


@dataclass(frozen=True)
class Parts:
    transformer: Mapping[str, Tensor] = field(repr=False)
    """Under the names of :class:`paretone.models.networks.causal.CausalTransformer`."""
    embedding: Tensor = field(repr=False)
    """(vocabulary, hidden): the single table that embeds sequences."""
    head: Tensor = field(repr=False)
    """(codes + stops, hidden)."""
    bias: Tensor | None = field(default=None, repr=False)
    """(codes + stops,)."""


class TensorNames(Protocol):
    @property
    def layers(self) -> str:
        """Prefix of a layer's number."""

    @property
    def head(self) -> str:
        """Name of the head's weight."""

    def parts(self, tensors: Mapping[str, Tensor]) -> Parts:
        """Group a checkpoint's tensors, without copying."""

    def tensors(self, parts: Parts) -> dict[str, Tensor]:
        """Inverse of :meth:`parts`: a checkpoint's tensors by name."""

    def spoken(self, head: Tensor) -> Tensor:
        """Select the rows of an official head that can be spoken, (codes + stops, hidden)."""


@dataclass(frozen=True)
class HuggingFaceNames:
    """Names of a causal model on the Hugging Face Hub, whose vocabulary has the speech ids ``rows`` (codes + stops,).
    When written, all other rows of the head are zero."""

    rows: Tensor = field(repr=False)
    layers: str = "model.layers."
    head: str = "lm_head.weight"
    embedding: str = "model.embed_tokens.weight"
    body: str = "model."

    def parts(self, tensors: Mapping[str, Tensor]) -> Parts:
        """Group the tensors; without a separate head, the embedding is the head."""
        tables = self.embedding, self.head
        body = {name.removeprefix(self.body): value for name, value in tensors.items() if name not in tables}
        embedding = tensors[self.embedding]
        return Parts(body, embedding, self.spoken(tensors.get(self.head, embedding)))

    def tensors(self, parts: Parts) -> dict[str, Tensor]:
        head = torch.zeros_like(parts.embedding)
        head[self.rows.to(head.device)] = parts.head
        named = {self.body + name: value for name, value in parts.transformer.items()}
        return named | {self.embedding: parts.embedding, self.head: head}

    def spoken(self, head: Tensor) -> Tensor:
        return head[self.rows.to(head.device)]


@dataclass(frozen=True)
class TrainingRow:
    """One training sequence of a model whose positions are counted from its beginning."""

    ids: tuple[int, ...]
    """Ids in the vocabulary of :attr:`Parts.embedding`."""
    labels: tuple[int, ...]
    """Next row of the head at each position; :data:`IGNORED` if not predicted."""
    embedded: Tensor | None = field(default=None, repr=False)
    """(T, D), in place of ids."""


class TokenModel(nn.Module):
    """``embedding`` and ``head`` are (codes + stops, hidden), ``bias`` (codes + stops,)."""

    def __init__(
        self,
        transformer: CausalTransformer | FusedTransformer,
        embedding: Tensor,
        head: Tensor,
        bias: Tensor | None = None,
        *,
        codes: int,
    ) -> None:
        super().__init__()
        if embedding.shape != head.shape or not 0 < codes < len(head):
            raise ValueError(
                f"Tables of {tuple(embedding.shape)} and {tuple(head.shape)} do not hold {codes} codes and stops."
            )
        self.transformer = transformer
        self.embedding = nn.Parameter(embedding)
        self.head = nn.Parameter(head)
        self.bias = None if bias is None else nn.Parameter(bias)
        self.codes = codes
        self._scores: Product | None = None
        self.prefixes = None if isinstance(transformer, CausalTransformer) else Prefixes()
        """Cache of request prefixes; ``None`` if weights may change."""

    @property
    def plain_transformer(self) -> CausalTransformer:
        """The transformer of a trainable model. Raises :class:`TypeError` for an optimised one."""
        if not isinstance(self.transformer, CausalTransformer):
            raise TypeError("The model is optimised for decoding; its layers are no parameters any more.")
        return self.transformer

    @property
    def fused_transformer(self) -> FusedTransformer:
        """The transformer of a model optimised for decoding. Raises :class:`TypeError` for others."""
        if not isinstance(self.transformer, FusedTransformer):
            raise TypeError("The model is not optimised for decoding.")
        return self.transformer

    @property
    def rows(self) -> int:
        return len(self.head)

    @property
    def stops(self) -> tuple[int, ...]:
        return tuple(range(self.codes, self.rows))

    @property
    def device(self) -> torch.device:
        return self.head.device

    def operations(self, tokens: int, context: int, scored: int) -> float:
        """Operations of one pass over ``tokens`` after ``context``; the last ``scored`` go through the head."""
        return self.transformer.config.operations(tokens, context) + 2 * scored * self.head.numel()

    frame_operations: float = 0.0
    """Operations of completing a token to a frame of codes."""

    @property
    def head_weight_bytes(self) -> float:
        return getattr(self._scores, "weight_bytes", float(self.head.element_size()))

    def embed(self, ids: Tensor | Sequence[int]) -> Tensor:
        """Ids (…) to (…, hidden)."""
        return F.embedding(torch.as_tensor(ids, dtype=torch.long, device=self.device), self.embedding)

    def logits(self, hidden: Tensor) -> Tensor:
        """Hidden states after the final norm, (…, hidden), to (…, rows)."""
        if self._scores is not None and hidden.dim() == 2:
            return self._scores(hidden)
        return F.linear(hidden, self.head, self.bias)

    @torch.inference_mode()
    def read(
        self, embedded: Tensor, cache: KeyValueCache, positions: Tensor, scored: int, keeps: Sequence[int] | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """See :meth:`paretone.sampling.cache.TokenScorer.read`."""
        transformer = self.transformer
        if self._scores is not None and isinstance(transformer, FusedTransformer):
            call = transformer.as_one_call(embedded.shape[1], cache, positions)
            if call is not None and transformer.is_like(self._scores):
                from paretone.models.kernels.one_call import head_of, scores_of

                found = scores_of(
                    embedded[0], scored, keeps or (), head_of(transformer.final_norm, self._scores), *call
                )
                cache.advance(embedded.shape[1])
                return found
        kept: dict[int, Tensor] = {}

        def probe(layer: int, what: str, output: Tensor) -> None:
            if what == "output" and layer in (keeps or ()):
                kept[layer] = output

        hidden = transformer(embedded, cache, positions, None if keeps is None else probe)
        features = None if keeps is None else torch.cat([*(kept[layer] for layer in keeps), hidden], dim=-1)[0]
        return self.logits(hidden[0, -scored:]), features

    @torch.inference_mode()
    def read_together(self, calls: Sequence[tuple[Any, ...]]) -> list[tuple[Tensor, Tensor | None]]:
        """:meth:`read` with the arguments of each of ``calls``, whose caches differ, in one pass."""
        if len(calls) == 1:
            return [self.read(*calls[0])]
        # Those of one voice next to one another: what their caches have in common is read once.
        order = sorted(range(len(calls)), key=lambda place: id(calls[place][1].prefix))
        some = ((*calls[place], None)[:5] for place in order)
        embedded, caches, positions, scored, keeps = zip(*some, strict=True)
        kept: dict[int, Tensor] = {}
        wanted = {layer for some in keeps for layer in some or ()}

        def probe(layer: int, what: str, output: Tensor) -> None:
            if layer in wanted:
                kept[layer] = output

        counts = [one.shape[1] for one in embedded]
        outputs = self.fused_transformer.together(embedded, caches, positions, probe)
        hidden = self.fused_transformer.final_norm(outputs).split(counts)
        last = [one[-count:] for one, count in zip(hidden, scored, strict=True)]
        scores = self.logits(torch.cat(last)).split(scored)
        inner = {layer: output.split(counts) for layer, output in kept.items()}
        features = [
            None if layers is None else torch.cat([*(inner[layer][place] for layer in layers), hidden[place]], -1)
            for place, layers in enumerate(keeps)
        ]
        found = dict(zip(order, zip(scores, features, strict=True), strict=True))
        return [found[place] for place in range(len(calls))]

    def _tables(self) -> tuple[Tensor, Tensor, Tensor | None]:
        return self.embedding.detach(), self.head.detach(), None if self.bias is None else self.bias.detach()

    def _made(self, transformer: Any, embedding: Tensor, head: Tensor, bias: Tensor | None) -> TokenModel:
        return TokenModel(transformer, embedding, head, bias, codes=self.codes)

    def with_transformer(self, transformer: Any) -> TokenModel:
        """Copy with shared tables around another ``transformer`` that computes the same function."""
        made = self._made(transformer, *self._tables()).requires_grad_(False)
        made._scores = self._scores
        return made

    def drafting(self, drafts: InnerDrafts) -> TokenModel:
        """Optimised copy that drafts codes within frames. Raises :class:`SettingError` if it cannot."""
        raise SettingError("The tokens of this model are not frames of several codes; do without drafts within frames.")

    def graphed(self, cache: GraphCache, bucket: int) -> TokenModel:
        """Optimised copy with recorded passes; see :mod:`paretone.models.kernels.graphs`."""
        return self.with_transformer(GraphedTransformer(self.fused_transformer, cache, bucket))

    def with_products(self, change: Callable[[Product, int], Product]) -> TokenModel:
        """Optimised copy with other products and shared tables; see :meth:`FusedTransformer.with_products`."""
        made = self.with_transformer(self.fused_transformer.with_products(change))
        made._scores = None if self._scores is None else change(self._scores, self.head.shape[1])
        return made

    def reach(self, positions: int) -> None:
        """Prepare an optimised transformer for ``positions``."""
        if not isinstance(self.transformer, CausalTransformer):
            self.transformer.reach(positions)

    def cache(self, capacity: int, batch: int = 1) -> KeyValueCache:
        return self.transformer.cache(capacity, batch)

    def kept(self, retained: Sequence[int]) -> TokenModel:
        """Copy with only the layers ``retained``; it shares weights if optimised."""
        transformer = self.transformer.kept(retained)
        trainable = isinstance(transformer, CausalTransformer)
        embedding, head, bias = self._tables()
        if trainable:
            embedding, head, bias = embedding.clone(), head.clone(), None if bias is None else bias.clone()
        fewer = self._made(transformer, embedding, head, bias).requires_grad_(trainable)
        fewer._scores = None if trainable else self._scores
        return fewer

    def optimised(self) -> TokenModel:
        """Version for inference; see :class:`paretone.models.kernels.fused_causal.FusedTransformer`."""
        transformer = self.transformer
        if isinstance(transformer, CausalTransformer):
            transformer = FusedTransformer.of(transformer)
        fast = self._made(transformer, *self._tables()).requires_grad_(False)
        fast._scores = product(fast.head.detach(), None if fast.bias is None else fast.bias.detach())
        return fast


class FeatureDrafter(TokenModel):
    """A draft that reads the hidden states of its target, for inference; see
    :mod:`paretone.models.networks.feature_draft`. It embeds with the target's table."""

    def __init__(self, draft: FeatureDraft, target: TokenModel) -> None:
        """Copies the weights of ``draft``, on the target's device in its type."""
        draft = draft.to(target.device, target.head.dtype)
        transformer = FusedTransformer(draft.config, [FusedLayer.of(draft.layer)], QuickNorm.of(draft.norm))
        super().__init__(transformer, *target._tables(), codes=target.codes)
        self.requires_grad_(False)
        self.reads = draft.reads
        self._mix, self._join = (product(one.weight.detach().clone()) for one in (draft.mix, draft.join))
        self._of_state, self._of_token = map(QuickNorm.of, (draft.of_state, draft.of_token))
        wide = draft.widening
        self._rank = wide.in_features
        self._narrow = product(draft.narrowing.weight.detach().clone())
        self._widen = product(wide.weight.detach().clone(), None if wide.bias is None else wide.bias.detach().clone())
        self._one_call = self._for_one_call()
        self._weights = draft.mix.weight.numel() + draft.join.weight.numel()
        self._weights_of_scores = draft.narrowing.weight.numel() + wide.weight.numel()

    def with_products(self, change: Callable[[Product, int], Product]) -> FeatureDrafter:
        made, width = copy.copy(self), self.head.shape[1]
        made._modules = {**self._modules, "transformer": self.fused_transformer.with_products(change)}
        made._mix, made._join = change(self._mix, (len(self.reads) + 1) * width), change(self._join, 2 * width)
        made._narrow, made._widen = change(self._narrow, width), change(self._widen, self._rank)
        made._one_call = made._for_one_call()
        return made

    def operations(self, tokens: int, context: int, scored: int) -> float:
        plain = self.transformer.config.operations(tokens, context)
        return plain + 2 * (tokens * self._weights + scored * self._weights_of_scores)

    @property
    def drafts_at_once(self) -> bool:
        """See :attr:`paretone.sampling.cache.FeatureScorer.drafts_at_once`."""
        return self._one_call is not None

    def mix(self, features: Tensor) -> Tensor:
        """Features (n, (reads + 1) · hidden) to states (n, hidden)."""
        return self._mix(features)

    @torch.inference_mode()
    def draft(
        self, states: Tensor, embedded: Tensor, cache: KeyValueCache, positions: Tensor, scored: int
    ) -> tuple[Tensor, Tensor]:
        """States of the tokens before, and tokens (n, hidden), to outputs (n, hidden), before the norm, and the scores
        (scored, rows) after the last ``scored`` tokens."""
        transformer = self.fused_transformer
        joined = self._join(torch.cat([self._of_state(states), self._of_token(embedded)], dim=-1))
        outputs = transformer.unnormed(joined[None], cache, positions)
        return outputs, self.logits(outputs[-scored:])

    @torch.inference_mode()
    def drafts(
        self,
        states: Tensor,
        embedded: Tensor,
        cache: KeyValueCache,
        positions: Tensor,
        uniforms: list[float],
        limits: Limits,
        sampling: Truncation,
    ) -> tuple[list[int], list[Tensor]] | None:
        """See :meth:`paretone.sampling.cache.FeatureScorer.drafts`."""
        transformer = self.fused_transformer
        transformer.reach(cache.capacity)
        call = transformer.as_one_call(len(embedded), cache, positions)
        if self._one_call is None or call is None:
            return None
        from paretone.models.kernels.one_call import drafts_of

        cache.memory_for(len(embedded) + len(uniforms) - 1)
        found = drafts_of(states, embedded, uniforms, self.embedding, limits, sampling, self._one_call, *call)
        cache.advance(len(embedded) + len(found[0]) - 1)
        return found

    def logits(self, hidden: Tensor) -> Tensor:
        return self._widen(self._narrow(self.fused_transformer.final_norm(hidden)))

    def _for_one_call(self) -> Draft | None:
        """What drafting in one call needs; ``None`` if the draft's products and its layer's differ in type."""
        transformer, join, narrow = self.fused_transformer, self._join, self._narrow
        if not transformer.is_like(join, narrow, self._widen):
            return None
        from paretone.models.kernels.one_call import Draft, head_of

        assert isinstance(join, BlockProduct) and isinstance(narrow, BlockProduct)
        of_state, of_token = self._of_state.weight.numpy(), self._of_token.weight.numpy()
        head = head_of(transformer.final_norm, self._widen)
        return Draft(of_state, of_token, join.address, narrow.address, self._rank, head)


@dataclass(frozen=True)
class LanguageNetwork:
    """An optimised token model, with the tables that embed its prompts, under the adapter's names."""

    tokens: TokenModel
    tables: Mapping[str, Tensor] = field(default_factory=dict, repr=False)

    def shared(self, ask: Ask) -> LanguageNetwork:
        """The network whose :meth:`TokenModel.read` is computed with others; itself, if that is not possible."""
        tokens = self.tokens
        if isinstance(tokens, FeatureDrafter) or type(tokens.transformer) is not FusedTransformer:
            return self
        asking = copy.copy(tokens)
        vars(asking)["read"] = lambda *given: ask(tokens.read_together, given)
        return LanguageNetwork(asking, self.tables)


@dataclass(frozen=True)
class DraftTensors:
    layers: Mapping[int, Mapping[str, Tensor]] = field(repr=False)
    """Trained layers by their number in the target, with official names after ``layers.N.``."""
    head: Tensor | None = field(repr=False)
    """(codes + stops, hidden), if trained."""

    @classmethod
    def read(
        cls,
        draft: DraftWeights,
        layers: str,
        head: str,
        spoken: Callable[[Tensor], Tensor] = lambda head: head,
        check: Check = lambda: None,
    ) -> DraftTensors:
        """Tensors in the file of a draft, whose names are ``layers`` + ``N.…`` and ``head``; ``spoken`` selects the
        head's rows, ``check`` may raise to cancel. Raises :class:`CheckpointError`."""
        weights = read_weights(Path(draft.path), check)
        table = weights.pop(head, None)
        found: dict[int, dict[str, Tensor]] = {}
        for name, value in weights.items():
            number, _, inner = name.removeprefix(layers).partition(".")
            if not (name.startswith(layers) and number.isdecimal()):
                raise CheckpointError(f"{draft.path} holds {name}, which drafts do not have; train it again.")
            found.setdefault(int(number), {})[inner] = value
        return cls(found, None if table is None else spoken(table))


@dataclass(frozen=True)
class Networks:
    target: LanguageNetwork
    draft: LanguageNetwork | None = None


ReadStudent = Callable[[StudentWeights], LanguageNetwork]
ReadDraft = Callable[[DraftWeights], DraftTensors]


class LanguageNetworks:
    """Provides the warmed-up networks for a synthesis."""

    def __init__(
        self,
        own: LanguageNetwork,
        read_student: ReadStudent,
        read_draft: ReadDraft,
        warm_up: Callable[[LanguageNetwork], None],
    ) -> None:
        self.own = own
        self._read_student = read_student
        self._read_draft = read_draft
        self._warm_up = warm_up
        self._others: LastUsed[LanguageNetwork] = LastUsed(3)
        """By fingerprint, or by retained layers."""
        self._with_products: LastUsed[LanguageNetwork] = LastUsed(2)  # A model and its draft.

    def of(self, plan: LanguagePlan, observer: Observer = SILENT) -> Networks:
        """Networks of a plan. Raises :class:`paretone.errors.CheckpointError` for files that do not fit."""
        target, retained = self.own, plan.layers
        if plan.weights is not None:
            target = self._read(plan.weights, observer)
        elif retained is not None:
            # Layers are shared with the model's own network and take no extra memory.
            target = self._warm(
                self._others, retained, lambda: LanguageNetwork(target.tokens.kept(retained), target.tables), observer
            )
        target = self._changed(target, plan, observer)
        draft = None if plan.draft is None else self._changed(self._read(plan.draft, observer), plan, observer)
        return Networks(target, draft)

    def _changed(self, network: LanguageNetwork, plan: LanguagePlan, observer: Observer) -> LanguageNetwork:
        """``network`` with other products and with drafts within its frames, if planned."""
        products, drafts = plan.products, plan.drafts_in_frames
        if products is None and drafts is None:
            return network

        def change() -> LanguageNetwork:
            tokens = network.tokens
            if products is not None:
                observer.status("Packing weights …")
                tokens = parts.products(products, tokens)
            return LanguageNetwork(tokens if drafts is None else tokens.drafting(drafts), network.tables)

        return self._warm(self._with_products, (network.tokens, products, drafts), change, observer)

    def _read(
        self, weights: DraftWeights | FeatureDraftWeights | StudentWeights, observer: Observer
    ) -> LanguageNetwork:
        def read() -> LanguageNetwork:
            if isinstance(weights, StudentWeights):
                observer.status(f"Reading the student with {weights.depth} layers …")
                return self._read_student(weights)
            observer.status("Reading the draft …")
            if isinstance(weights, FeatureDraftWeights):
                return LanguageNetwork(feature_drafter(self.own.tokens, weights), self.own.tables)
            return drafting(self.own, weights, self._read_draft(weights))

        return self._warm(self._others, weights.fingerprint, read, observer)

    def _warm(
        self, where: LastUsed[LanguageNetwork], key: Hashable, make: Callable[[], LanguageNetwork], observer: Observer
    ) -> LanguageNetwork:
        def warm() -> LanguageNetwork:
            made = make()
            with compiling(observer.status, observer.check):
                self._warm_up(made)
            return made

        return where.of(key, warm)


def drafting(own: LanguageNetwork, draft: DraftWeights, tensors: DraftTensors) -> LanguageNetwork:
    """The draft: layers of ``own``, shared, with the trained ones in their place. Raises :class:`CheckpointError` if
    ``tensors`` do not fit the model or the file's description."""
    tokens, path = own.tokens, draft.path
    transformer = tokens.fused_transformer
    strange = sorted(set(tensors.layers) ^ set(draft.trained))
    if strange or not set(draft.trained) <= set(draft.retained) or draft.retained[-1] >= transformer.config.layers:
        raise CheckpointError(f"The draft {path} does not hold the layers that it says; train it again.")
    if draft.head and (tensors.head is None or tensors.head.shape != tokens.head.shape):
        raise CheckpointError(f"The draft {path} has no head that fits this model; train it again.")
    layers, dtype = {}, tokens.head.dtype
    for number, weights in tensors.layers.items():
        layers[draft.retained.index(number)] = loaded_strictly(
            lambda: CausalLayer(transformer.config).to(tokens.device, dtype),
            {name: value.to(dtype) for name, value in weights.items()},
            f"layer {number} of {path}",
        )
    head = tokens.head if tensors.head is None else tensors.head.to(tokens.device, dtype)
    shallow = transformer.kept(draft.retained).replaced(layers)
    bias = None if tokens.bias is None else tokens.bias.detach()
    drafted = TokenModel(shallow, tokens.embedding.detach(), head.detach(), bias, codes=tokens.codes)
    return LanguageNetwork(drafted.optimised(), own.tables)


def feature_drafter(target: TokenModel, draft: FeatureDraftWeights) -> FeatureDrafter:
    """Raises :class:`CheckpointError` if the file does not fit ``target``."""
    config, tensors = target.transformer.config, read_weights(Path(draft.path))
    head = tensors.get("scores.1.weight")
    if head is None or len(head) != target.rows or not all(layer < config.layers for layer in draft.reads):
        raise CheckpointError(f"The draft {draft.path} was made for another model; train it again.")
    made = loaded_strictly(
        lambda: FeatureDraft(config, draft.reads, len(head), head.shape[1], "scores.1.bias" in tensors),
        {name: value.float() for name, value in tensors.items()},
        draft.path,
    )
    return FeatureDrafter(made, target)


@dataclass(frozen=True)
class DecodingLoop:
    target: TokenModel
    draft: TokenModel | None
    request: Request
    draft_request: Request | None
    """Request of the draft, whose prompt may be embedded with other tables."""
    sampler: TokenSampler
    uniforms: Callable[[], float]
    check: Check
    memory: dict[str, Any]
    """State that techniques keep with the loaded model between syntheses, each under the name of its module."""
    acceptance: Part | None = None
    """The plan's rule for accepting drafted tokens; ``None``: the decoding technique's."""

    @property
    def rule(self) -> Rule | None:
        if self.acceptance is None:
            return None
        return parts.rule(self.acceptance, self.target.codes, self.target.rows, self.target.device)
