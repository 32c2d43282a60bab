"""The shipped voices with shorter prompts: whole ones, read anew for each sentence, outlast what tests let them say."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import soundfile

from paretone.models import voices
from paretone.models.voices import INDEX, PLACE, shipped_names
from tests.workload import is_thorough

TEXT, FOLLOWING = "We will meet at the old", "h"
"""The beginning of what all voices say, and the first phone of what follows."""


@pytest.fixture(scope="module")
def short_prompts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Until the module ends, the shipped voices say only the beginning of their prompts."""
    if is_thorough():
        yield
        return
    resource, folder = voices.resource, shortened(tmp_path_factory.mktemp("voices"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(voices, "resource", lambda *parts: folder if parts == PLACE else resource(*parts))
        yield


def shortened(folder: Path) -> Path:
    """``folder``, with the beginnings of all shipped voices."""
    whole = voices.resource(*PLACE)
    shutil.copyfile(whole / INDEX, folder / INDEX)
    for name in shipped_names():
        phones = json.loads((whole / f"{name}.json").read_text(encoding="utf-8"))["phones"]
        kept = phones[: next(place for place, (phone, *_) in enumerate(phones) if phone == FOLLOWING)]
        (folder / f"{name}.json").write_text(json.dumps({"text": TEXT, "phones": kept}), encoding="utf-8")
        samples, rate = soundfile.read(whole / f"{name}.wav")
        soundfile.write(folder / f"{name}.wav", samples[: round(kept[-1][2] * rate)], rate)
    return folder
