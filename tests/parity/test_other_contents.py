"""The parity tests hold for fixtures of other content: sizes and names are the fixture's, not theirs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from tests.parity import test_parity_cosyvoice2_sound, test_parity_f5_text, test_parity_omnivoice, test_parity_ssd
from tests.parity.fixtures import GOLDEN_PREFIX, SHIPPED, Fixture


def copied(folder: Path, subfolder: str, name: str, description: dict, tensors: dict[str, Tensor]) -> Fixture:
    """A fixture of ``folder``: the shipped one of this name with some entries and golden tensors changed."""
    shipped = Fixture(SHIPPED / subfolder, name)
    for path in shipped.folder.glob("*"):
        (folder / path.name).symlink_to(path)
    changed = folder / f"{name}.json"
    changed.unlink()
    changed.write_text(json.dumps(shipped.description | description), encoding="utf-8")
    for path in (folder / f"{name}.io.safetensors", folder / f"{name}.safetensors"):
        if tensors and path.exists():
            prefix = "" if path.name.endswith(".io.safetensors") else GOLDEN_PREFIX
            numbers = load_file(path) | {f"{prefix}{key}": value.contiguous() for key, value in tensors.items()}
            path.unlink()
            save_file(numbers, path)
    return Fixture(folder, name)


@pytest.mark.parametrize(("prompt", "tokens"), [(3, 60), (7, 46), (0, 131)])
def test_other_numbers_of_tokens(tmp_path: Path, prompt: int, tokens: int) -> None:
    shipped = Fixture(SHIPPED / "ar", "cosyvoice2_stream")
    changed = {
        "token": shipped["token"][:tokens],
        "prompt_token": shipped["prompt_token"][:, :prompt],
        "prompt_feat": shipped["prompt_feat"][:, : 2 * prompt],
    }
    fixture = copied(tmp_path, "ar", "cosyvoice2_stream", {}, changed)
    test_parity_cosyvoice2_sound.test_parity_cosyvoice2_stream_of_our_own_is_the_whole(fixture)


def test_other_languages(tmp_path: Path) -> None:
    rows = [{"given": "Nowhereish", "resolved": None}, {"given": "NONE", "resolved": None}]
    rows += [{"given": "french", "resolved": "fr"}, {"given": "", "resolved": None}]
    fixture = copied(tmp_path, "ar", "omnivoice_util", {"language": rows}, {})
    test_parity_omnivoice.test_parity_omnivoice_util_languages(fixture)


def test_recordings_of_two_channels(tmp_path: Path) -> None:
    shipped = Fixture(SHIPPED / "dit", "f5_pipeline")
    names = [name for name in shipped.names if name.endswith(".audio_in")]
    # One channel twice as loud, one silent: their mean is the shipped recording to the last bit.
    changed = {name: torch.cat([2 * shipped[name], 0 * shipped[name]]) for name in names}
    fixture = copied(tmp_path, "dit", "f5_pipeline", {}, changed)
    for index in range(len(fixture.description["scenarios"])):
        test_parity_f5_text.test_parity_long_text(fixture, index)


def test_what_the_draft_never_draws_has_no_acceptance(tmp_path: Path) -> None:
    shipped = Fixture(SHIPPED / "ar", "ssd")
    width = shipped["p"].shape[-1]
    wide = [name for name in shipped.names if shipped[name].shape[-1:] == (width,) and shipped[name].ndim == 2]
    changed = {name: torch.nn.functional.pad(shipped[name], (0, 1)) for name in wide}
    for name in changed:
        if name.endswith(".accept_prob"):
            changed[name][:, width] = 0.123
    fixture = copied(tmp_path, "ar", "ssd", {}, changed)
    for tolerance in test_parity_ssd.tolerances(fixture):
        test_parity_ssd.test_parity_ssd_mathematics(fixture, tolerance)
