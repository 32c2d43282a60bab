"""Sentences for what can go wrong."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
import torch

from paretone.errors import AudioError, details, is_device_lost, is_out_of_memory, sentence


def caught(action: object) -> BaseException:
    try:
        action()
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


def test_memory_of_the_cpu() -> None:
    error = caught(lambda: torch.empty(10**14))
    assert isinstance(error, RuntimeError)
    assert is_out_of_memory(error)
    assert sentence(error, "synthesising") == (
        "This machine ran out of memory while synthesising; use a shorter text or close other programs."
    )


def test_memory_of_a_graphics_card() -> None:
    error = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB.")
    assert is_out_of_memory(error) and is_out_of_memory(MemoryError())
    assert is_out_of_memory(OSError(errno.ENOMEM, "Cannot allocate memory"))
    text = sentence(error, "loading the model", "cuda:0")
    assert text.startswith(
        "The graphics card ran out of memory while loading the model; unload the current model first"
    )
    assert text.endswith("or load the model on the CPU.")


def test_a_graphics_card_that_failed() -> None:
    error = RuntimeError("CUDA error: unspecified launch failure\nCompile with `TORCH_USE_CUDA_DSA`.")
    assert is_device_lost(error)
    assert not is_out_of_memory(error)
    other = caught(lambda: torch.ones(2, 3) @ torch.ones(2, 3))
    assert not is_out_of_memory(other) and not is_device_lost(other)
    assert sentence(error, "synthesising", "cuda:0").startswith("The graphics card failed while synthesising")
    assert not is_device_lost(torch.OutOfMemoryError("CUDA error: out of memory"))


def test_missing_file(tmp_path: Path) -> None:
    path = tmp_path / "voice.wav"
    text = sentence(caught(path.read_bytes), "synthesising")
    assert text == f"The file {path} is missing, which is needed for synthesising; put it back or choose another."


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux's always full device")
def test_full_disk() -> None:
    def write() -> None:
        with open("/dev/full", "wb", buffering=0) as file:
            file.write(b"speech")

    assert sentence(caught(write), "downloading the model") == "The disk is full; free some space and try again."


def test_unforeseen_error() -> None:
    error = caught(lambda: {}["key"])
    text = "Something unexpected went wrong while calibrating: KeyError: 'key'."
    assert sentence(error, "calibrating") == text
    assert sentence(error, "calibrating", afterwards="The engine goes on.") == f"{text} The engine goes on."
    assert "Traceback" in details(error)
    foreseen = AudioError("The recording is empty.")
    assert (sentence(foreseen, "synthesising"), details(foreseen)) == ("The recording is empty.", "")
