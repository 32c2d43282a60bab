"""Qwen3-TTS for decoding: the talker as a token model, whose tokens are the first codes of frames, and the predictor of
their other codes.

The predictor reads at most as many rows as a frame has codes, always from an empty cache. Nothing is read back from the
device within a frame, so that it can be recorded as one CUDA graph. Codes may be drafted by its first layers, and
several drafted codes checked at once by the others: each code is drawn with its own random number, from the same
scores as without drafts, so that frames are equal.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from weakref import ref

import torch
from torch import Tensor

from paretone.errors import SettingError
from paretone.models.families.language_network import TokenModel
from paretone.models.kernels.few_rows import Product, product
from paretone.models.kernels.fused_causal import FusedTransformer
from paretone.models.kernels.graphs import GraphCache, Replay
from paretone.models.qwen3_tts.talker import CodePredictor, FramePrompt, Talker
from paretone.sampling.autoregressive import Complete, Frame
from paretone.sampling.cache import KeyValueCache
from paretone.sampling.tokens import TokenSampler
from paretone.setting.plan import InnerDrafts


class FramePredictor:
    """The codes of a frame after its first. Immutable."""

    def __init__(
        self,
        transformer: FusedTransformer,
        narrowing: Product | None,
        heads: Sequence[Product],
        tables: Tensor,
        drafting: InnerDrafts | None = None,
    ) -> None:
        """``tables`` (groups, codes, width) embed the codes after the first, the last one's for the talker only;
        ``narrowing`` maps from that width to the transformer's, if they differ."""
        self.transformer, self.tables = transformer, tables
        self._narrowing, self._heads, self._drafting = narrowing, tuple(heads), drafting
        self._positions = torch.arange(self.groups + 1, device=tables.device)
        self._groups = self._positions[:-1]
        self._cache: KeyValueCache | None = None
        """That of recorded frames."""
        self._graphs: GraphCache[_Recorded] | None = None
        if drafting is not None:
            layers = transformer.config.layers
            self._lower = transformer.kept(range(drafting.layers))
            self._upper = transformer.kept(range(drafting.layers, layers))

    @classmethod
    @torch.no_grad()
    def of(cls, plain: CodePredictor) -> FramePredictor:
        """Copies the weights of ``plain``."""
        narrow = plain.small_to_mtp_projection
        narrowing = None
        if isinstance(narrow, torch.nn.Linear):
            narrowing = product(narrow.weight.detach().clone(), narrow.bias.detach().clone())
        heads = [product(one.weight.detach().clone()) for one in plain.lm_head]
        tables = torch.stack([one.weight.detach() for one in plain.model.codec_embedding])
        return cls(FusedTransformer.of(plain.model), narrowing, heads, tables)

    @property
    def groups(self) -> int:
        """Number of codes that it chooses."""
        return len(self._heads)

    @property
    def operations(self) -> float:
        """Operations of a frame, code by code."""
        passes = self.transformer.config.operations(2, 0)
        passes += sum(self.transformer.config.operations(1, before) for before in range(2, self.groups + 1))
        return passes + self._operations_of_rows(self.groups + 1) + self.groups * self._operations_of_scores

    def with_products(self, change: Callable[[Product, int], Product]) -> FramePredictor:
        width, inner = self.tables.shape[-1], self.transformer.config.hidden
        narrowing = None if self._narrowing is None else change(self._narrowing, width)
        heads = [change(one, inner) for one in self._heads]
        return FramePredictor(self.transformer.with_products(change), narrowing, heads, self.tables, self._drafting)

    def drafted(self, drafting: InnerDrafts) -> FramePredictor:
        """The same with codes drafted by its first layers. Raises :class:`SettingError` unless another layer checks."""
        layers = self.transformer.config.layers
        if not 0 < drafting.layers < layers:
            raise SettingError(
                f"Frames are completed by {layers} layers, of which from 1 to {layers - 1} may draft, not "
                f"{drafting.layers}."
            )
        return FramePredictor(self.transformer, self._narrowing, self._heads, self.tables, drafting)

    def graphed(self, cache: GraphCache) -> FramePredictor:
        """The same with frames recorded whole. Drafted codes are not: how many are kept is known only after reading
        them back."""
        made = copy.copy(self)
        made._cache = self.transformer.cache(self.groups + 1)
        made._graphs = cache
        return made

    def embedded(self, codes: Tensor) -> Tensor:
        """Codes (groups, n) to their summed embeddings (n, width)."""
        return self.tables[self._groups[:, None], codes].sum(0)

    @torch.inference_mode()
    def predict(
        self, state: Tensor, first: Tensor, sampler: TokenSampler, uniforms: Sequence[float]
    ) -> tuple[Tensor, float]:
        """The other codes of a frame (groups,), drawn with ``uniforms``, and the operations. ``state`` and ``first``
        (width,): the talker's hidden state, and the embedding of the first code."""
        rows = torch.stack([state, first])
        if self._drafting is not None:
            return self._predict_drafted(rows, sampler, uniforms, self._drafting)
        given = torch.tensor(uniforms, dtype=torch.float32, device=rows.device)
        if self._graphs is not None:
            recorded = self._graphs.find(
                ("frame", ref(self), sampler),
                lambda: _Recorded(self, sampler, rows, given, self._graphs),
                f"a frame of {self.groups + 1} codes",
            )
            if recorded is not None:
                return recorded.predict(rows, given), self.operations
        return self.choose(rows, sampler, given), self.operations

    def choose(self, rows: Tensor, sampler: TokenSampler, uniforms: Tensor) -> Tensor:
        """Codes (groups,), one after another, from the two first ``rows`` (2, width) and ``uniforms`` (groups,)."""
        cache = self._cache or self.transformer.cache(self.groups + 1)
        cache.crop(0)
        codes, fed = [], rows
        for group, uniform in enumerate(uniforms):
            start = cache.length
            fed = self._narrowed(fed)
            hidden = self.transformer(fed[None], cache, self._positions[start : start + len(fed)])[0]
            codes.append(drawn(sampler.probabilities(self._scores(hidden, (group,)), ())[0], uniform))
            fed = self.tables[group].index_select(0, codes[-1])
        return torch.cat(codes)

    def _predict_drafted(
        self, rows: Tensor, sampler: TokenSampler, uniforms: Sequence[float], drafting: InnerDrafts
    ) -> tuple[Tensor, float]:
        """Each group's code is drawn with its own uniform from the complete network's scores. The lower layers draft
        with the same uniforms; the upper ones continue from what the lower ones computed of all drafted rows at once,
        and the first code that differs replaces its draft."""
        given = torch.tensor(uniforms, dtype=torch.float32, device=rows.device)
        lower, upper = (one.cache(self.groups + 1) for one in (self._lower, self._upper))
        codes: list[int] = []
        operations, norm = 0.0, self.transformer.final_norm
        fed, seen = rows, rows.new_empty(0, self.transformer.config.hidden)
        while len(codes) < self.groups:
            first, drafts = len(codes), []
            for group in range(first, min(first + drafting.most, self.groups)):
                start, narrowed = lower.length, self._narrowed(fed)
                operations += self._lower.config.operations(len(fed), start) + self._operations_of_rows(len(fed))
                places = self._positions[start : start + len(fed)]
                below = self._lower.unnormed(narrowed[None], lower, places)
                seen = torch.cat([seen, below])
                operations += self._operations_of_scores
                drafts.append(drawn(sampler.probabilities(self._scores(norm(below), (group,)), ())[0], given[group]))
                fed = self.tables[group].index_select(0, drafts[-1])
            start = upper.length
            operations += self._upper.config.operations(len(seen), start) + len(drafts) * self._operations_of_scores
            hidden = self._upper(seen[None], upper, self._positions[start : start + len(seen)])[0]
            groups = range(first, first + len(drafts))
            scores = self._scores(hidden[-len(drafts) :], groups)
            shares = (sampler.probabilities(scores[row : row + 1], ())[0] for row in range(len(drafts)))
            chosen = torch.cat([drawn(one, given[group]) for one, group in zip(shares, groups, strict=True)])
            wanted, proposed = torch.stack([chosen, torch.cat(drafts)]).tolist()
            agreed = next((row for row in range(len(drafts)) if wanted[row] != proposed[row]), len(drafts) - 1)
            codes += wanted[: agreed + 1]
            # The row of the last code is read next, by both parts.
            lower.crop(len(codes) + 1)
            upper.crop(len(codes) + 1)
            seen = seen[:0]
            fed = self.tables[len(codes) - 1].index_select(0, chosen[agreed : agreed + 1])
        return torch.tensor(codes, device=rows.device), operations

    def _narrowed(self, rows: Tensor) -> Tensor:
        return rows if self._narrowing is None else self._narrowing(rows)

    def _scores(self, hidden: Tensor, groups: Sequence[int]) -> Tensor:
        """Float32 scores (groups, codes) of ``groups`` from the last rows of ``hidden``."""
        rows = hidden[-len(groups) :]
        return torch.cat([self._heads[group](rows[row : row + 1]) for row, group in enumerate(groups)]).float()

    def _operations_of_rows(self, rows: int) -> float:
        width, inner = self.tables.shape[-1], self.transformer.config.hidden
        return 0.0 if self._narrowing is None else 2.0 * rows * width * inner

    @property
    def _operations_of_scores(self) -> float:
        return 2.0 * self.tables.shape[1] * self.transformer.config.hidden


class _Recorded:
    """A frame as one recording."""

    def __init__(
        self, predictor: FramePredictor, sampler: TokenSampler, rows: Tensor, uniforms: Tensor, cache: Any
    ) -> None:
        self._rows, self._uniforms = rows.clone(), uniforms.clone()
        # What the recording reads must live as long as it.
        self._of = predictor
        self._replay: Replay
        self._replay, self._codes = cache.record(partial(predictor.choose, self._rows, sampler, self._uniforms))

    def predict(self, rows: Tensor, uniforms: Tensor) -> Tensor:
        self._rows.copy_(rows)
        self._uniforms.copy_(uniforms)
        self._replay()
        return self._codes.clone()


def drawn(probabilities: Tensor, uniform: Tensor) -> Tensor:
    """As :func:`paretone.sampling.tokens.draw`, (1,), without reading it back."""
    sums = probabilities.cumsum(-1)
    return torch.searchsorted(sums, sums[-1:] * uniform, right=True)


class FrameModel(TokenModel):
    """The talker, optimised for decoding, with the predictor. Local ids: the codes of the first group, and the end."""

    def __init__(
        self, transformer: Any, embedding: Tensor, head: Tensor, predictor: FramePredictor, *, codes: int
    ) -> None:
        super().__init__(transformer, embedding, head, codes=codes)
        self.predictor = predictor

    @classmethod
    def of(cls, talker: Talker, whole: FrameModel | None = None) -> FrameModel:
        """Copies the weights of ``talker``; a student embeds and completes frames as the ``whole`` model does."""
        rows = talker.config.spoken.to(talker.codec_head.weight.device)
        if whole is None:
            embedding = talker.model.codec_embedding.weight.detach()[rows]
            predictor = FramePredictor.of(talker.code_predictor)
        else:
            embedding, predictor = whole.embedding.detach(), whole.predictor
        transformer, head = FusedTransformer.of(talker.model), talker.codec_head.weight.detach()[rows]
        return cls(transformer, embedding, head, predictor, codes=talker.config.codes).optimised()

    def _made(self, transformer: Any, embedding: Tensor, head: Tensor, bias: Tensor | None) -> FrameModel:
        return FrameModel(transformer, embedding, head, self.predictor, codes=self.codes)

    def _with(self, model: TokenModel, predictor: FramePredictor) -> FrameModel:
        assert isinstance(model, FrameModel)
        model.predictor = predictor
        return model

    def optimised(self) -> FrameModel:
        return self._with(super().optimised(), self.predictor)

    def with_products(self, change: Callable[[Product, int], Product]) -> FrameModel:
        return self._with(super().with_products(change), self.predictor.with_products(change))

    def graphed(self, cache: GraphCache, bucket: int) -> FrameModel:
        return self._with(super().graphed(cache, bucket), self.predictor.graphed(cache))

    def drafting(self, drafts: InnerDrafts) -> FrameModel:
        return self._with(self.with_transformer(self.transformer), self.predictor.drafted(drafts))

    @property
    def frame_operations(self) -> float:  # type: ignore[override]
        return self.predictor.operations

    def completing(self, prompt: FramePrompt, sampler: TokenSampler) -> Complete:
        """Completes the tokens of a request; ``sampler`` draws the other codes."""
        predictor = self.predictor

        def complete(state: Tensor, token: int, number: int, uniforms: Callable[[], float]) -> Frame:
            first = self.embedding[token]
            others, operations = predictor.predict(state, first, sampler, [uniforms() for _ in range(predictor.groups)])
            embedded = first + predictor.embedded(others[:, None])[0] + prompt.fed_with(number)
            return Frame((token, *others.tolist()), embedded, operations)

        return complete
