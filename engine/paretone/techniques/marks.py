"""What techniques are drawn as, in the window and in reports: by their identity alone. Neither the data, nor the order
in which they came, nor the plug-ins that are installed change it. Torch-free."""

from __future__ import annotations

from collections.abc import Iterable

from paretone.figures.glyphs import Mark, derived_mark
from paretone.techniques.registry import find

_GOES_WITH_ALL = "steps"


def technique_mark(name: str) -> Mark:
    """The mark of a technique, of this version or not, installed or not."""
    found = find(name)
    return found.mark if found is not None and found.mark is not None else derived_mark(name)


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """Ours as declared, then all others by name; step pruning last. A point of several techniques has the shape of the
    first and the colours of all, from the left: step pruning goes with everything, so the point is drawn as the other
    one."""
    return tuple(sorted(names, key=_rank))


def _rank(name: str) -> tuple[bool, bool, int, str]:
    found = find(name)
    ours = found is not None and found.mark is not None
    return name == _GOES_WITH_ALL, not ours, found.place if ours and found is not None else 0, name
