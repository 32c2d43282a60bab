"""The decoding loops' view of every speech language model: a transformer between two tables of speech tokens.

Ids are local: codes from 0 on, then the ids that end speech. An adapter cuts the rows of these out of its model's
tables, so that no pass computes scores of text, and knows which official ids they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from paretone.models.kernels.few_rows import HalfProduct, Product, product
from paretone.models.kernels.fused_causal import FusedTransformer
from paretone.models.networks.causal import CausalTransformer
from paretone.sampling.cache import KeyValueCache, Prefixes


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
        """Cache of prefixes of requests; ``None`` if weights may change."""

    @property
    def plain_transformer(self) -> CausalTransformer:
        """The transformer of a model that can be trained. Raises :class:`TypeError` for an optimised one."""
        if not isinstance(self.transformer, CausalTransformer):
            raise TypeError("The model is optimised for decoding; its layers are no parameters any more.")
        return self.transformer

    @property
    def fused_transformer(self) -> FusedTransformer:
        """The transformer of a model that is optimised for decoding. Raises :class:`TypeError` for others."""
        if not isinstance(self.transformer, FusedTransformer):
            raise TypeError("The model is not optimised for decoding.")
        return self.transformer

    @property
    def rows(self) -> int:
        """Number of ids."""
        return len(self.head)

    @property
    def stops(self) -> tuple[int, ...]:
        """The ids that end speech."""
        return tuple(range(self.codes, self.rows))

    @property
    def device(self) -> torch.device:
        """Its device."""
        return self.head.device

    @property
    def head_weight_bytes(self) -> float:
        """Bytes of each weight that scores are computed from."""
        return getattr(self._scores, "weight_bytes", float(self.head.element_size()))

    @property
    def head_is_half(self) -> bool:
        """Whether scores are computed from weights that are held in float16."""
        return isinstance(self._scores, HalfProduct)

    def embed(self, ids: Tensor | Sequence[int]) -> Tensor:
        """Ids (…) to (…, hidden)."""
        ids = torch.as_tensor(ids, dtype=torch.long, device=self.device)
        return F.embedding(ids, self.embedding)

    def logits(self, hidden: Tensor) -> Tensor:
        """Hidden states after the final norm, (…, hidden), to (…, rows)."""
        if self._scores is not None and hidden.dim() == 2:
            return self._scores(hidden)
        return F.linear(hidden, self.head, self.bias)

    def _tables(self) -> tuple[Tensor, Tensor, Tensor | None]:
        """Embedding, head and bias, shared and without gradients."""
        return self.embedding.detach(), self.head.detach(), None if self.bias is None else self.bias.detach()

    def with_transformer(self, transformer: Any) -> TokenModel:
        """The same, tables shared, around another ``transformer`` that computes the same."""
        made = TokenModel(transformer, *self._tables(), codes=self.codes).requires_grad_(False)
        made._scores = self._scores
        return made

    def with_products(self, change: Callable[[Product, int], Product]) -> TokenModel:
        """The same, optimised, with other products: see :meth:`FusedTransformer.with_products`. Tables are shared."""
        made = self.with_transformer(self.fused_transformer.with_products(change))
        made._scores = None if self._scores is None else change(self._scores, self.head.shape[1])
        return made

    def reach(self, positions: int) -> None:
        """Prepare the transformer for ``positions``, if it can be."""
        if not isinstance(self.transformer, CausalTransformer):
            self.transformer.reach(positions)

    def cache(self, capacity: int, batch: int = 1) -> KeyValueCache:
        """An empty cache for its transformer."""
        return self.transformer.cache(capacity, batch)

    def kept(self, retained: Sequence[int]) -> TokenModel:
        """The same with only the layers ``retained``: a copy, or one that shares weights if it is optimised."""
        transformer = self.transformer.kept(retained)
        trainable = isinstance(transformer, CausalTransformer)
        embedding, head, bias = self._tables()
        if trainable:
            embedding, head, bias = embedding.clone(), head.clone(), None if bias is None else bias.clone()
        fewer = TokenModel(transformer, embedding, head, bias, codes=self.codes).requires_grad_(trainable)
        fewer._scores = None if trainable else self._scores
        return fewer

    def optimised(self) -> TokenModel:
        """The same for inference; see :class:`paretone.models.kernels.fused_causal.FusedTransformer`."""
        transformer = self.transformer
        if isinstance(transformer, CausalTransformer):
            transformer = FusedTransformer.of(transformer)
        fast = TokenModel(transformer, *self._tables(), codes=self.codes).requires_grad_(False)
        fast._scores = product(fast.head.detach(), None if fast.bias is None else fast.bias.detach())
        return fast
