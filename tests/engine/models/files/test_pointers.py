"""What a clone without Git LFS has in place of a release's files: each is named, with what to do, whichever model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from paretone.errors import CheckpointError
from paretone.models import load_model
from paretone.models.catalogue import entry
from tests.engine.models.cosyvoice2 import small_release as cosyvoice2
from tests.engine.models.llasa import small_release as llasa
from tests.engine.models.megatts3 import small_release
from tests.engine.models.megatts3 import small_release as megatts3
from tests.engine.models.omnivoice import small_release as omnivoice
from tests.workload import workload

POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'ab' * 32}\nsize 1348428256\n"

NOT_READ = {"tokenizer_config.json", "generation_config.json", "config.json"}
"""Files without which a model loads: what the writers of tokenizers add, and XCodec2's, which reads recordings."""


def _llasa(root: Path) -> None:
    llasa.write_original_codec(root.parent / "xcodec2")
    llasa.write_language_model(root, shards=2)


def _megatts3(root: Path) -> None:
    megatts3.write_release(root)
    small_release.write_folder(root / "g2p")


RELEASES: dict[str, tuple[Callable[[Path], object], str]] = {
    "CosyVoice2-0.5B": (cosyvoice2.write_release, "onnxruntime"),
    "Llasa-1B": (_llasa, "tokenizers"),
    "OmniVoice": (omnivoice.write_release, "tokenizers"),
    "MegaTTS3": (_megatts3, "transformers"),
}


@pytest.mark.parametrize("model", ["f5-mini", "omni-mini", "megatts3-mini"])
def test_a_folder_that_has_only_the_weights_pointer(tmp_path: Path, model: str) -> None:
    """Whatever else is missing there."""
    path = tmp_path / entry(model).weights / "model.safetensors"
    path.parent.mkdir(exist_ok=True)
    path.write_text(POINTER)
    with pytest.raises(CheckpointError, match=r"model\.safetensors .*is a Git LFS pointer, .*; run 'git lfs pull'"):
        load_model(model, folder=str(tmp_path), device="cpu")


@pytest.mark.parametrize("model", workload(tuple(RELEASES), ("Llasa-1B", "OmniVoice")))
def test_every_file_of_a_release(tmp_path: Path, model: str) -> None:
    write, package = RELEASES[model]
    pytest.importorskip(package)
    root = tmp_path / model
    write(root)
    files = [path for path in sorted(tmp_path.rglob("*")) if path.is_file()]
    unnamed = []
    for path in files:
        own = path.read_bytes()
        path.write_text(POINTER)
        try:
            load_model(model, folder=str(root), device="cpu")
            said = ""
        except CheckpointError as error:
            said = str(error)
        path.write_bytes(own)
        if path.name in NOT_READ and not said:
            continue
        if "Git LFS pointer" not in said or "run 'git lfs pull'" not in said or path.name not in said:
            unnamed.append((str(path.relative_to(tmp_path)), said))
    assert len(files) > 3
    assert not unnamed, "\n".join(map(str, unnamed))
