"""The shipped voices with shorter prompts. A model reads the prompt anew for each sentence, and the whole one takes
longer than what tests let it say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import soundfile

from engine.models import catalogue
from tests.workload import is_thorough

PROMPT = ("models", "f5-mini", catalogue.VOICES)
TEXT, FOLLOWING = "We will meet at the old", "hh"
"""The beginning of what both voices say, and the first phone of what follows."""


@pytest.fixture(scope="module")
def short_prompts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Until the module ends, the shipped voices say only the beginning of their prompts; nothing else of them
    changes."""
    if is_thorough():
        yield
        return
    whole, folder = catalogue.resource(*PROMPT), tmp_path_factory.mktemp("voices")
    for name in catalogue.VOICE_TITLES:
        shorten(whole, folder, name)
    resource = catalogue.resource
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(catalogue, "resource", lambda *parts: folder if parts == PROMPT else resource(*parts))
        yield


def shorten(whole: Path, folder: Path, name: str) -> None:
    """Write the voice's beginning into ``folder``."""
    phones = json.loads((whole / f"{name}.json").read_text(encoding="utf-8"))["phones"]
    kept = phones[: [phone for phone, *_ in phones].index(FOLLOWING)]
    (folder / f"{name}.json").write_text(json.dumps({"text": TEXT, "phones": kept}), encoding="utf-8")
    samples, rate = soundfile.read(whole / f"{name}.wav")
    soundfile.write(folder / f"{name}.wav", samples[: round(kept[-1][2] * rate)], rate)
