"""What every target says of profiles, before anything is written."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from paretone.errors import Cancelled, PlainError, SettingError
from paretone.export.accounts import OptionLedger
from paretone.export.delivery import PIECE_BYTES, Content, Copied, Made, deliver
from paretone.export.targets import account, target, targets
from paretone.models.catalogue import entry, models
from paretone.models.declaration import Model
from paretone.observer import SILENT
from paretone.setting.knobs import defaults
from paretone.setting.profile import Profile
from paretone.setting.setting import Setting, UsedTechnique
from paretone.techniques import conflict, techniques
from tests.engine.command_line import Console


def plain(model: Model, **options: object) -> Profile:
    return Profile(Setting(model.id, model.options_with(**options), seed=7), "a" * 64, model.variant or model.id)


def with_each_technique(model: Model) -> list[Profile]:
    """The plain profile, and one with each technique that needs no artefact."""
    found = [plain(model)]
    for one in techniques():
        if model.family not in one.families or one.artefact is not None:
            continue
        needs = one.weights is not None and one.weights.required
        used = UsedTechnique(one.name, defaults(one.knobs), "b" * 64 if needs else "")
        setting = found[0].setting.with_technique(used)
        if conflict(setting) is None:
            found.append(Profile(setting, "a" * 64, found[0].variant))
    return found


@pytest.mark.parametrize("name", [one.name for one in targets()])
def test_every_option_and_technique_is_honoured_or_dropped(name: str) -> None:
    chosen, accepted = target(name), 0
    for profile in (profile for model in models() for profile in with_each_technique(model)):
        said = account(chosen, profile)
        if said.why_not:
            assert said.why_not.endswith(".")
            assert not said.honours and not said.drops
            continue
        accepted += 1
        model = entry(profile.setting.model)
        lines = [*said.honours, *said.drops]
        named = [line.what for line in lines]
        assert sorted(set(named)) == sorted(named), "nothing is said twice"
        assert {knob.title for knob in model.options if not knob.later} | {"Seed"} <= set(named)
        for used in profile.setting.techniques:
            title = next(one.title for one in techniques() if one.name == used.technique).partition(" (")[0]
            assert any(title in one for one in named) or used in said.techniques
        assert all(line.how and not line.how.endswith(".") for line in lines)
        json.dumps(said.to_json(), allow_nan=False)
    assert accepted or name in ("average-velocity", "safetensors")


def test_what_is_dropped_takes_its_options_along() -> None:
    """A technique that sets options and cannot be carried leaves the setting's own in force."""
    model = entry("f5-mini")
    (steps,) = (one for one in techniques() if one.name == "steps")
    setting = plain(model).setting.with_technique(UsedTechnique(steps.name, defaults(steps.knobs).replace(steps=5)))
    profile = Profile(setting, "a" * 64, "f5-mini")
    assert account(target("f5-tts"), profile).options["steps"] == 5
    weights = account(target("safetensors"), profile, guided_weights=True)
    assert weights.options["steps"] == 12 and weights.honours == ()
    ledger = OptionLedger(model, model.options_with(), 3)
    ledger.drop("no", "steps")
    ledger.honour("yes", "steps", "seed", "nothing like it")
    ledger.drop_rest("forgotten")
    assert [line.what for line in ledger.lines(carried=True)] == ["Steps", "Seed"]
    assert {line.how for line in ledger.lines(carried=False)} == {"forgotten"}
    assert len(ledger.lines(carried=False)) == len([one for one in model.options if not one.later]) - 1


def test_guidance_in_the_weights_takes_none_on_top() -> None:
    said = account(target("f5-tts"), plain(entry("f5-mini"), guidance=1.5), guided_weights=True)
    assert next(line.value for line in said.honours if line.what == "Guidance") == "0"


def test_what_decides_the_prompts_goes_with_them() -> None:
    said = account(target("transformers"), plain(entry("lm-mini"), dates="british", pronunciations="tea = TEE"))
    assert {"Dates", "Pronunciations"} <= {line.what for line in said.honours if line.how.endswith("of prompts.json")}


def test_an_unknown_target_is_named_with_all() -> None:
    with pytest.raises(SettingError, match="choose one of f5-tts, "):
        target("elsewhere")


def test_the_command_says_it_before_and_writes_nothing_if_asked(tmp_path: Path, console: Console) -> None:
    plain(entry("f5-mini")).save(tmp_path / "p.json")
    command = ["export", "--profile", tmp_path / "p.json", "--say"]
    assert "Honoured:\n  Steps 12: set by" in console.out(*command, "--target", "f5-tts", "--out", tmp_path / "out")
    said = console.data(*command, "--json")["targets"]
    assert list(said) == [one.name for one in targets()]
    assert {"what": "Steps", "value": "12", "how": "set by paretone_profile.apply"} in said["f5-tts"]["honours"]
    assert said["safetensors"]["why_not"].startswith("The profile does not use CFG-free")
    assert "nowhere; download it" in console.out(*command, "--folder", tmp_path / "nowhere")
    assert not (tmp_path / "out").exists()
    assert "Give --target and --out, or --say" in console.refusal(*command[:-1], code=2)


CONTENTS = {"a.json": b"{}", "b.bin": bytes(2 * PIECE_BYTES + 1)}


def listing(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_folder_is_made_and_what_is_there_already_stays(tmp_path: Path) -> None:
    folder, told = tmp_path / "new" / "out", []
    written = deliver(folder, CONTENTS, lambda done, total: told.append((done, total)))
    assert [path.name for path in written] == list(CONTENTS)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == CONTENTS
    total = sum(map(len, CONTENTS.values()))
    assert told == [(2, total), (2 + PIECE_BYTES, total), (2 + 2 * PIECE_BYTES, total), (total, total)]
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    deliver(folder, CONTENTS, SILENT.progress)
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == before


@pytest.mark.parametrize("kind", ["file", "folder", "dangling link"])
def test_nothing_is_replaced(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "b.bin"
    if kind == "file":
        path.write_bytes(b"precious")
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PlainError, match=r"b\.bin exists with other content and is kept"):
        deliver(tmp_path, CONTENTS, SILENT.progress)
    assert listing(tmp_path) == ["b.bin"]
    assert path.is_symlink() or path.is_dir() or path.read_bytes() == b"precious"


def test_what_appears_meanwhile_is_not_replaced_either(tmp_path: Path) -> None:
    with pytest.raises(PlainError, match=r"b\.bin exists"):
        deliver(tmp_path, CONTENTS, lambda done, total: (tmp_path / "b.bin").write_bytes(b"precious"))
    assert listing(tmp_path) == ["b.bin"] and (tmp_path / "b.bin").read_bytes() == b"precious"


def test_cancelling_leaves_nothing_behind(tmp_path: Path) -> None:
    def cancel(done: int, total: int) -> None:
        if done > PIECE_BYTES:
            raise Cancelled

    with pytest.raises(Cancelled):
        deliver(tmp_path / "new" / "out", CONTENTS, cancel)
    assert listing(tmp_path) == []


def test_a_full_disk_is_reported_and_leaves_nothing_behind(tiny_disk: Path) -> None:
    with pytest.raises(PlainError, match=r"b\.bin could not be written: the disk is full"):
        deliver(tiny_disk / "out", CONTENTS, SILENT.progress)
    assert listing(tiny_disk) == []


def large(folder: Path) -> dict[str, Content]:
    source = folder / "source.bin"
    source.write_bytes(bytes(PIECE_BYTES + 3))

    def write(path: Path, wrote: Callable[[int], None]) -> None:
        with path.open("wb") as file:
            for piece in (b"one", b"two"):
                wrote(file.write(piece))

    return {"deep/copied.bin": Copied(source), "made.bin": Made(write, 5)}


def test_large_files_are_copied_and_made_piece_by_piece(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    written = deliver(tmp_path / "out", large(tmp_path), lambda done, total: told.append((done, total)))
    assert [one.read_bytes() for one in written] == [bytes(PIECE_BYTES + 3), b"onetwo"]
    total = PIECE_BYTES + 3 + 5
    # What is made may turn out larger than expected: the progress ends where it should.
    assert [done for done, _ in told] == [PIECE_BYTES, PIECE_BYTES + 3, PIECE_BYTES + 6, total, total]
    before = [path.stat().st_mtime_ns for path in written]
    assert deliver(tmp_path / "out", large(tmp_path), SILENT.progress) == written
    assert [path.stat().st_mtime_ns for path in written] == before


@pytest.mark.parametrize("name", ["deep/copied.bin", "made.bin"])
@pytest.mark.parametrize("other", [b"other", bytes(PIECE_BYTES + 2) + b"x"])
def test_no_large_file_is_replaced(tmp_path: Path, name: str, other: bytes) -> None:
    path = tmp_path / "out" / name
    path.parent.mkdir(parents=True)
    path.write_bytes(other)
    with pytest.raises(PlainError, match="exists with other content and is kept"):
        deliver(tmp_path / "out", large(tmp_path), SILENT.progress)
    assert path.read_bytes() == other
    assert [one for one in (tmp_path / "out").rglob("*") if one.is_file()] == [path]


def test_a_folder_that_cannot_be_made_and_a_source_that_is_gone_are_named(tmp_path: Path) -> None:
    contents = large(tmp_path)
    (tmp_path / "source.bin").unlink()
    with pytest.raises(PlainError, match=r"source\.bin cannot be read"):
        deliver(tmp_path / "out", contents, SILENT.progress)
    assert listing(tmp_path) == []
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(PlainError, match="could not be made: its folder is a file"):
        deliver(tmp_path / "file" / "out", CONTENTS, SILENT.progress)
