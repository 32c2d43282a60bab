"""Modules that front ends share with the engine load nothing heavy: neither torch nor Qt, nor libraries for sound."""

import json
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

import paretone
from paretone.models import load_model
from paretone.models.base import Synthesis
from paretone.models.catalogue import entry, voice
from paretone.setting.setting import Setting
from paretone.setting.take import DecodingCycle
from paretone.speaking import synthesise
from tests.workload import workload

ROOT = Path(__file__).resolve().parents[2]
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
(SHARED,) = (one["source_modules"] for one in CONTRACTS if "share" in one["name"])
LIGHT = (
    *SHARED,
    *("paretone", "paretone.cli", "paretone.commands", "paretone.setting.profile", "paretone.session.engine_thread"),
)
HEAVY = ("PySide6", "paretone_app", "pyqtgraph", "scipy", "sounddevice", "soundfile", "torch")
IMPORTING = """
import importlib, json, sys

for module in json.loads(sys.argv[1]):
    importlib.import_module(module)
    if found := {name.partition(".")[0] for name in sys.modules}.intersection(json.loads(sys.argv[2])):
        sys.exit(f"{module} imports {found}")
"""


def test_importing_them_is_light() -> None:
    command = [sys.executable, "-c", IMPORTING, json.dumps(LIGHT), json.dumps(HEAVY)]
    assert subprocess.run(command, capture_output=True, text=True).stderr == ""


def test_the_public_names_exist() -> None:
    assert all(getattr(paretone, name) is not None for name in paretone.__all__)


FARTHEST = 2e-3
"""Of full scale; the largest difference measured is 5e-4."""


@pytest.fixture(autouse=True)
def threads_as_before() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def spoken(model: str, threads: int) -> Synthesis:
    speech = load_model(model, device="cpu")
    torch.set_num_threads(threads)
    setting = Setting(model, entry(model).options_with(**workload({}, {"steps": 2})), seed=3)
    return synthesise(speech, workload("Rice is often served in round bowls.", "Rice."), voice("", model), setting)


def cycles(made: Synthesis) -> list[DecodingCycle]:
    decoding = made.trace.decoding
    return [] if decoding is None else [cycle for passage in decoding.passages for cycle in passage]


@pytest.mark.parametrize("model", workload(["f5-mini", "megatts3-mini", "lm-mini", "omni-mini"], ["f5-mini"]))
def test_threads_change_the_last_digits_only_and_the_same_number_nothing(model: str) -> None:
    one, again, two = spoken(model, 1), spoken(model, 1), spoken(model, 2)
    assert np.array_equal(one.samples, again.samples)
    assert one.samples.shape == two.samples.shape
    assert np.abs(one.samples - two.samples).max() < FARTHEST
    tokens, others = ([one.tokens for one in cycles(made)] for made in (one, two))
    assert tokens == others
