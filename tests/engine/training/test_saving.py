"""Where trained weights are written: never over what somebody else keeps there."""

from __future__ import annotations

import os
from pathlib import Path

import torch
from safetensors.torch import save_file

from paretone.training.runs import log_of, save_with_log
from paretone.training.session import LOG


def test_links_and_pipes_in_the_way_stay(tmp_path: Path) -> None:
    work, target = tmp_path / "work", tmp_path / "out" / "draft.safetensors"
    work.mkdir()
    target.parent.mkdir()
    (work / LOG).write_text('{"run": 1}\n')

    def save(path: Path) -> None:
        save_file({"a": torch.ones(3)}, path)

    os.mkfifo(target)
    written = save_with_log(save, target, work)
    assert written.name == "draft-2.safetensors" and target.is_fifo() and log_of(written).is_file()
    target.unlink()
    target.symlink_to("nowhere")
    assert save_with_log(save, target, work) == written and target.is_symlink()
    target.unlink()
    target.symlink_to(written.name)
    before = written.stat().st_ino
    assert save_with_log(save, target, work) == target, "it says the same"
    assert target.is_symlink() and written.stat().st_ino == before
