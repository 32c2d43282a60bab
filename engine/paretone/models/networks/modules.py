"""A list of submodules of one kind, which type checkers know: ``nn.ModuleList``, and nothing else when it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import nn

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Generic, TypeVar, overload

    Kind = TypeVar("Kind", bound=nn.Module)

    class Modules(nn.ModuleList, Generic[Kind]):
        def __init__(self, modules: Iterable[Kind] = ()) -> None: ...

        def __iter__(self) -> Iterator[Kind]: ...

        @overload
        def __getitem__(self, idx: slice) -> Modules[Kind]: ...

        @overload
        def __getitem__(self, idx: int) -> Kind: ...

        def __getitem__(self, idx: int | slice) -> Modules[Kind] | Kind: ...

else:
    Modules = nn.ModuleList
