"""Values of knobs, and weights that no longer ship: here the bundled model's take the place of such."""

import pickle
from dataclasses import replace
from pathlib import Path

import pytest

from paretone.errors import ProfileError, SettingError, StudyError
from paretone.setting import compatibility
from paretone.setting.compatibility import ReplacedModel, checkpoint_text, is_replaced
from paretone.setting.knobs import Choice, Number, Text, checked, defaults
from paretone.setting.profile import Profile
from paretone.studies.store import Store
from paretone.techniques.resolving import known
from tests.engine.studies.small import study

WRITTEN = Path(__file__).resolve().parents[2] / "first_edition"
OTHER = "ab" * 32
INSTRUCTION = Text("instruction", "Instruction", "How to speak.", default="", longest=12)
LATER = (Number("old", "Old", "", default=1.0), Choice("new", "New", "", default="a", values=("a", "b"), later=True))


@pytest.fixture
def profile(monkeypatch: pytest.MonkeyPatch) -> Profile:
    """One of the first version, whose weights have been replaced since."""
    found = Profile.load(WRITTEN / "ditreducio.json")
    earlier = ReplacedModel("f5-mini", "F5 mini", ("slt", "rms"))
    monkeypatch.setattr(compatibility, "REPLACED", {found.checkpoint: earlier})
    return found


def test_a_profile_of_replaced_weights_and_its_table_say_whose_they_are(profile: Profile) -> None:
    loaded = replace(known("f5-mini"), fingerprint=OTHER, variant=profile.variant)
    with pytest.raises(ProfileError, match=r"for checkpoint '\w{12}' \(the earlier F5 mini\), but 'abababababab' is"):
        profile.check(loaded)
    table = profile.artefact("table")
    found = table.compatibility.mismatch(replace(table.compatibility, fingerprint=OTHER))
    assert found == f"it belongs to checkpoint {checkpoint_text(profile.checkpoint)}, but '{OTHER[:12]}' is in use"
    assert table.compatibility.mismatch(table.compatibility) is None


def test_a_study_of_replaced_weights_is_not_continued_with_others(profile: Profile, tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.begin(study())
        store.settle_checkpoint(profile.checkpoint)
        store.settle_checkpoint(profile.checkpoint)
        with pytest.raises(StudyError, match=r"other weights, '\w{12}' \(the earlier F5 mini\), than the loaded ones"):
            store.settle_checkpoint(OTHER)


def test_takes_are_of_replaced_weights_by_their_checkpoint_or_their_voice(profile: Profile) -> None:
    assert is_replaced("f5-mini", profile.checkpoint, "anna") and not is_replaced("f5-mini", OTHER, "slt")
    # Before takes kept their checkpoint.
    assert is_replaced("f5-mini", "", "slt") and not is_replaced("f5-mini", "", "own:me.wav")
    assert not is_replaced("E2TTS_Base", "", "slt")


@pytest.mark.parametrize(("value", "said"), [(3, "must be text, not 3"), ("a" * 13, "has 13 characters, but 12")])
def test_what_is_no_text_or_too_long_is_refused(value: object, said: str) -> None:
    assert INSTRUCTION.check(" Speak \n low. ") == "Speak low."
    with pytest.raises(SettingError, match=said):
        INSTRUCTION.check(value)


def test_a_later_knob_is_written_only_if_it_is_not_at_its_default() -> None:
    before = checked(LATER, {"old": 2.0}, "owner")
    assert before["new"] == before.get("new") == "a" and "new" in before
    assert dict(before) == {"old": 2.0}, "as files say that are older than the knob"
    after = before.replace(new="b")
    assert dict(after) == {"old": 2.0, "new": "b"} and after != before
    back = after.replace(new="a")
    assert back == before and hash(back) == hash(before) and dict(back) == {"old": 2.0}
    for one in (before, after):
        again = pickle.loads(pickle.dumps(one))
        assert again == one and again["new"] == one["new"]
    assert defaults(LATER) == checked(LATER, {}, "owner")


@pytest.mark.parametrize("value", [10**400, float("inf"), True])
def test_numbers_that_no_float_can_hold_are_refused(value: object) -> None:
    with pytest.raises(SettingError, match=r"Old must be a number, not .{1,40}\."):
        LATER[0].check(value)
