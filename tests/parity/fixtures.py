"""Golden fixtures: what official code computed, as ``.json`` (configuration) and ``.safetensors`` (numbers), where
weights and golden tensors may be files of their own (``.weights.safetensors`` and ``.io.safetensors``).

They are read from ``tests/golden``, or from the folder that ``PARETONE_GOLDEN`` names, with the same subfolders. A
test asks for all fixtures of its kind (what the JSON describes); those that ship with the repository but that the other
folder lacks are skipped.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from tests.workload import crossed

ROUNDING = 2**-20
"""Of the largest number: eight units in its last place. Processors with other instructions sum products in another
order than the one on which the fixtures were made."""
RELATIVE = 1e-4
"""Of the range of what is compared."""
GOLDEN_PREFIX = "golden."
SHIPPED = Path(__file__).resolve().parent.parent / "golden"


def golden_folder() -> Path:
    """The folder in use."""
    return Path(os.environ.get("PARETONE_GOLDEN") or SHIPPED)


@dataclass(frozen=True)
class Fixture:
    """One fixture of ``folder``, by the name that its files share."""

    folder: Path
    name: str

    @functools.cached_property
    def description(self) -> dict:
        """The JSON file."""
        return json.loads((self.folder / f"{self.name}.json").read_text(encoding="utf-8"))

    @functools.cached_property
    def tensors(self) -> dict[str, Tensor]:
        """Everything in the ``.safetensors`` files; empty where there is none."""
        whole, weights, golden = (self._numbers(suffix) for suffix in ("", ".weights", ".io"))
        return whole | weights | {f"{GOLDEN_PREFIX}{name}": value for name, value in golden.items()}

    def _numbers(self, suffix: str) -> dict[str, Tensor]:
        path = self.folder / f"{self.name}{suffix}.safetensors"
        return load_file(path) if path.is_file() else {}

    @property
    def weights(self) -> dict[str, Tensor]:
        """The official state dict."""
        return {name: value for name, value in self.tensors.items() if not name.startswith(GOLDEN_PREFIX)}

    def part(self, prefix: str) -> dict[str, Tensor]:
        """The weights whose names begin with ``prefix``, without it."""
        found = self.weights.items()
        return {name.removeprefix(prefix): value for name, value in found if name.startswith(prefix)}

    def beside(self, name: str) -> Fixture:
        """Another fixture of the same folder, or as shipped."""
        found = Fixture(self.folder, name)
        return found if (self.folder / f"{name}.json").is_file() else Fixture(SHIPPED / self.folder.name, name)

    @property
    def names(self) -> list[str]:
        """Names of the golden tensors."""
        return [name.removeprefix(GOLDEN_PREFIX) for name in self.tensors if name.startswith(GOLDEN_PREFIX)]

    def __contains__(self, name: str) -> bool:
        return f"{GOLDEN_PREFIX}{name}" in self.tensors

    def __getitem__(self, name: str) -> Tensor:
        return self.tensors[f"{GOLDEN_PREFIX}{name}"]


def fixtures(subfolder: str, is_kind: Callable[[dict], bool]) -> list:
    """Parameters: the fixtures of :func:`fixtures` with each case that ``listed`` finds; a tuple is several."""
    parameters = []
    present, shipped = (
        {path.stem: Fixture(path.parent, path.stem) for path in sorted((root / subfolder).glob("*.json"))}
        for root in (golden_folder(), SHIPPED)
    )
    for name in sorted(present.keys() | shipped.keys()):
        fixture = present.get(name) or shipped[name]
        if is_kind(fixture.description):
            lacking = pytest.mark.skip(reason=f"{golden_folder() / subfolder} has no fixture {name}")
            parameters.append(pytest.param(fixture, id=name, marks=() if name in present else lacking))
    return parameters


def qwen3_fixtures(kind: str) -> list:
    return fixtures("qwen3", lambda said: said.get("kind") == f"qwen3_{kind}")


def cases(parameters: list, listed: Callable[[Fixture], Iterable[object]]) -> list:
    """Parameters for (fixture, case): the fixtures of :func:`fixtures` with each case that ``listed`` finds in it. A
    tuple is several arguments."""
    return [
        pytest.param(one.values[0], *values, id="-".join(map(str, (one.id, *values))), marks=one.marks)
        for one in parameters
        for case in listed(one.values[0])
        for values in [case if isinstance(case, tuple) else (case,)]
    ]


def alternating(parameters: list, *ways: Sequence[object]) -> list:
    """The cases of ``parameters`` in each of ``ways``: in all where tests are thorough, else in one after the other."""
    return [
        pytest.param(*one.values, *more, id="-".join(map(str, (one.id, *more))), marks=one.marks)
        for one, *more in crossed(parameters, *ways)
    ]


def assert_close(found: Tensor, expected: Tensor, tolerance: float, what: str) -> None:
    """Fail for a difference above ``tolerance``, rounding apart, or not a number; without one, all must be equal."""
    assert found.shape == expected.shape, f"shape {tuple(found.shape)} instead of {tuple(expected.shape)}"
    if not expected.numel():
        return
    difference = (found.double() - expected.double()).abs().max().item()
    allowed = tolerance and tolerance + ROUNDING * expected.abs().max().item()
    assert difference <= allowed, f"{what} differs by {difference:.3g}, more than {allowed:.3g}"


def assert_near(found: Tensor, expected: Tensor, what: str) -> None:
    """:func:`assert_close` up to :data:`RELATIVE` of the range of ``expected``."""
    assert_close(found, expected, RELATIVE * (expected.max() - expected.min()).item(), what)


def full_precision() -> None:
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("highest")


KEYS = SHIPPED / "keys"


def released(name: str) -> dict[str, tuple[int, ...]]:
    """Names and shapes of a release's weights."""
    tensors = json.loads((KEYS / f"{name}.json").read_text(encoding="utf-8"))["tensors"]
    return {key: tuple(shape) for key, (shape, _) in tensors.items()}
