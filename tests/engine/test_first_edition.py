"""Files that an earlier version wrote still open: profiles, strategy tables, takes, a finished study.

``tests/first_edition`` holds what version 0.1 wrote on a processor with the bundled models, before techniques became
plug-ins. The application's calibrations of that time: ``tests/app/features/strategy/test_first_edition.py``.
"""

import shutil
from pathlib import Path

import numpy as np
import pytest

from paretone.setting.compatibility import is_replaced
from paretone.setting.library import Library
from paretone.setting.profile import Profile
from paretone.studies import results
from tests.engine.command_line import Console

WRITTEN = Path(__file__).resolve().parents[1] / "first_edition"
PROFILES = ("dit", "ditreducio", "f5-stack", "lm-spade", "lm-ssd", "mega-gi", "omni-block")


@pytest.mark.parametrize("name", PROFILES)
def test_a_profile_is_read_and_written_again_byte_for_byte(name: str) -> None:
    path = WRITTEN / f"{name}.json"
    assert Profile.load(path).encoded() == path.read_bytes()


def test_takes_are_listed_and_loaded_with_their_sound_and_what_was_seen(tmp_path: Path) -> None:
    with Library(shutil.copytree(WRITTEN / "takes", tmp_path / "takes")) as library:
        summaries = library.summaries()
        assert len(summaries) == 4
        for one in summaries:
            take = library.load(one.id)
            assert np.abs(take.samples).max() > 0.05
            assert take.measurements.real_time_factor > 0
        used = {entry.technique for one in summaries for entry in one.setting.techniques}
    assert used == {"ditreducio", "speculative", "blockwise"}


def test_a_study_is_read_and_is_not_continued_with_other_weights(tmp_path: Path, console: Console) -> None:
    file = Path(shutil.copy(WRITTEN / "small.toml", tmp_path))
    folder = shutil.copytree(WRITTEN / "small.study", tmp_path / "small.study")
    found = results.read(folder)
    assert [one.origin for one in found.settings] == ["baseline", "grid", "grid"]
    ratios = [one.value("ops_ratio") for one in found.settings]
    assert ratios[0] == 1
    assert ratios == sorted(ratios, reverse=True)
    assert "no voice named 'slt' any more: it was one of the earlier F5 mini" in console.refusal("study", "run", file)
    assert [one["takes"] for one in console.data("study", "status", "--json", folder)["settings"]] == [1, 1, 1]


def test_takes_are_known_for_those_of_the_earlier_model() -> None:
    with Library(WRITTEN / "takes", read_only=True) as library:
        earlier = {one.setting.model for one in library.summaries() if is_replaced(one.setting.model, "", one.voice)}
    assert earlier == {"f5-mini", "lm-mini", "omni-mini"}


@pytest.mark.parametrize(
    ("profile", "title"), [("ditreducio", "F5 mini"), ("lm-ssd", "LM mini"), ("omni-block", "Omni mini")]
)
def test_a_profile_of_the_earlier_model_says_so(profile: str, title: str, tmp_path: Path, console: Console) -> None:
    out = tmp_path / "speech.wav"
    command = ["speak", "--quiet", "--profile", WRITTEN / f"{profile}.json", "--text", "Hi there."]
    assert f"(the earlier {title}), but" in console.refusal(*command, "--voice", "anna", "--out", out)
    assert not out.exists()
