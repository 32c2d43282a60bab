"""Drafts accepted in groups: the technique on a small language model, from finding groups to a profile."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch

from paretone.errors import ProfileError, SettingError
from paretone.models.base import Synthesis
from paretone.models.catalogue import voice
from paretone.models.minis.lm_mini import LmMiniSpeech
from paretone.observer import Observer
from paretone.setting.knobs import Values
from paretone.setting.plan import NotPrepared
from paretone.setting.profile import Profile
from paretone.setting.setting import Setting, UsedTechnique
from paretone.speaking import synthesise
from paretone.studies.hooks import preparer
from paretone.techniques import conflict, resolve
from paretone.techniques.base import JobTask
from paretone.techniques.token_groups import NAME
from paretone.techniques.token_groups.finding import PAUSE_SECONDS, directions, hear, neighbourhoods
from paretone.techniques.token_groups.groups import GroupHeard, Groups, HearGroup
from tests.engine.command_line import Console
from tests.engine.small_language import CODES
from tests.engine.speaking import TEXT, drafted, load, setting, shallow, view, write_all
from tests.engine.techniques.ditreducio.observing import Recorder

FIXED = {"adaptive": False, "verification": "token"}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> LmMiniSpeech:
    return load(write_all(tmp_path_factory.mktemp("language") / "model"))


def grouping(**knobs: object) -> UsedTechnique:
    return UsedTechnique(NAME, Values({"cosine": 0.1, **knobs}))


def found(model: LmMiniSpeech, chosen: Setting) -> Groups:
    return preparer(NAME)(model, (), chosen, Recorder())


def with_groups(model: LmMiniSpeech, chosen: Setting) -> tuple[Setting, Groups]:
    """``chosen`` with the groups that its knobs give."""
    groups = found(model, chosen)
    return chosen.with_technique(replace(chosen.technique(NAME), artefact=groups.fingerprint)), groups


def spoken(model: LmMiniSpeech, chosen: Setting, *groups: Groups) -> Synthesis:
    return synthesise(model, TEXT, voice("", "lm-mini"), chosen, groups)


def test_more_drafts_are_accepted(model: LmMiniSpeech) -> None:
    exact = spoken(model, setting(drafted(**FIXED)))
    chosen, groups = with_groups(model, setting(drafted(**FIXED), grouping(cosine=0.0, largest=12)))
    grouped = spoken(model, chosen, groups)
    assert grouped.measurements.target_passes < exact.measurements.target_passes
    assert any("accepted in groups" in note for note in grouped.notes)
    alone, none = with_groups(model, setting(drafted(**FIXED), grouping(cosine=1.0)))
    assert not none.members
    assert cycles(spoken(model, alone, none)) == cycles(exact), "a group of one token is the token"


def cycles(synthesis: Synthesis) -> list[tuple[object, ...]]:
    """What each cycle drafted and committed."""
    return [(one.drafted, one.tokens, one.outcome) for one in synthesis.trace.decoding.cycles]


def test_groups_hold_what_is_similar(model: LmMiniSpeech) -> None:
    rows = directions(model.own.tokens, "scores")
    assert torch.allclose(rows.norm(dim=-1), torch.ones(CODES))
    groups = found(model, setting(grouping(cosine=0.2, largest=4)))
    assert groups.members and {len(one) for one in groups.members} <= {2, 3, 4}
    cosines = rows @ rows.T
    for members in groups.members:
        assert any(all(cosines[centre, one] >= 0.2 - 1e-6 for one in members) for centre in members)
    assert groups.grouped <= CODES == groups.codes
    assert sum(size * count for size, count in groups.sizes.items()) >= CODES
    larger = found(model, setting(grouping(cosine=0.2, largest=4, smallest=4)))
    assert {len(one) for one in larger.members} <= {4} and len(larger.members) < len(groups.members)
    assert found(model, setting(grouping(cosine=0.2, largest=4, space="embeddings"))).members != groups.members


def test_equal_rows_are_one_group_and_a_row_is_in_its_own() -> None:
    rows = torch.nn.functional.normalize(torch.tensor([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), dim=-1)
    watching = Recorder()
    around = neighbourhoods(rows, 2, watching)
    assert around.ids[:, 0].tolist() == [0, 1, 2, 3] and all(len(one) == 2 for one in around.groups(0.9, 2))
    assert neighbourhoods(rows, 9, watching).groups(0.9, 2) == ((0, 1, 2),)
    assert watching.progressed[-1][0] == watching.progressed[-1][1]


def test_groups_follow_the_students_tables(model: LmMiniSpeech) -> None:
    chosen, groups = with_groups(model, setting(shallow(depth=2), drafted(**FIXED), grouping()))
    assert groups.checkpoint == resolve(model.info, chosen, (groups,)).fingerprint != model.info.fingerprint
    assert spoken(model, chosen, groups).measurements.tokens
    with pytest.raises(ProfileError, match="they belong to checkpoint"):
        spoken(model, chosen.without("spade"), groups)


def test_what_it_needs_and_what_it_excludes(model: LmMiniSpeech) -> None:
    with pytest.raises(NotPrepared, match="has no token groups yet"):
        resolve(model.info, setting(drafted(), grouping()))
    reason = conflict(setting(drafted(tolerance=0.2), grouping()))
    assert reason is not None and "replaces the tolerance β = 0.2" in reason and "set β to 0" in reason
    assert conflict(setting(grouping())) is None, "without a draft it does nothing, and says so"
    chosen, groups = with_groups(model, setting(grouping()))
    plan = resolve(model.info, chosen, (groups,))
    assert plan.decoding is None and "Nothing is drafted" in plan.notes[0]
    wrong = replace(groups, codes=CODES - 1, members=())
    used = replace(chosen.technique(NAME), artefact=wrong.fingerprint)
    with pytest.raises(SettingError, match="those of 23 tokens, but the model has 24"):
        spoken(model, chosen.with_technique(used).with_technique(drafted()), wrong)


def test_artefact_as_json(model: LmMiniSpeech) -> None:
    groups = found(model, setting(grouping()))
    data = json.loads(json.dumps(groups.to_json()))
    assert Groups.from_json(data) == groups and Groups.from_json(data).fingerprint == groups.fingerprint
    assert replace(groups, cosine=0.11).fingerprint == groups.fingerprint, "equal groups act alike"
    assert replace(groups, members=groups.members[1:]).fingerprint != groups.fingerprint
    for field, value, said in (
        ("schema", 2, "this version reads schema 1"),
        ("groups", [[1, "2"]], r"groups\[0\]\[1\] must be a whole number"),
        ("groups", [[1, CODES]], f"below {CODES}"),
    ):
        with pytest.raises(ProfileError, match=said):
            Groups.from_json({**data, field: value})


def test_profiles_carry_them(model: LmMiniSpeech, tmp_path: Path) -> None:
    chosen, groups = with_groups(model, setting(drafted(**FIXED), grouping()))
    path = tmp_path / "profile.json"
    Profile.of(chosen, model.info, (groups,)).save(path)
    read = Profile.load(path)
    assert read.artefacts == (groups,)
    read.check(model.info)
    knobs = chosen.technique(NAME).knobs
    other = read.setting.with_technique(UsedTechnique(NAME, knobs.replace(cosine=0.3), groups.fingerprint))
    with pytest.raises(ProfileError, match=r"groups\.cosine is 0\.1, but setting\.techniques says 0\.3"):
        Profile(other, read.checkpoint, read.variant, (groups,))


def test_members_are_heard_one_after_another(model: LmMiniSpeech) -> None:
    def sound(*members: int) -> GroupHeard:
        return hear(JobTask(HearGroup(setting(), voice("", "lm-mini"), members, 0.3), Observer(), model))

    heard = sound(3, 5, 3)
    rate, starts = heard.sample_rate, [round(one * heard.sample_rate) for one in heard.starts]
    assert heard.members == (3, 5, 3) and starts[0] == 0
    held = starts[1] - round(PAUSE_SECONDS * rate)
    assert held / rate == pytest.approx(0.3, abs=0.05)
    first, second, third = (heard.samples[start : start + held] for start in starts)
    assert np.array_equal(first, third) and not np.array_equal(first, second)
    assert not heard.samples[held : starts[1]].any() and heard.samples[:held].any()
    with pytest.raises(SettingError, match=f"no token {CODES}; its tokens are 0 to {CODES - 1}"):
        sound(CODES)


def test_from_the_command_line(paretone: Console, tmp_path: Path) -> None:
    out, audio, profile = tmp_path / "groups.json", tmp_path / "group.wav", tmp_path / "profile.json"
    data = paretone.data("group-tokens", "--cosine", "0.1", "--out", out, "--audio", audio, "--group", "2", "--json")
    groups = Groups.from_json(json.loads(out.read_text()))
    assert data["fingerprint"] == groups.fingerprint and data["groups"] == len(groups.members)
    assert tuple(data["members"]) == groups.by_size[1] and soundfile.info(audio).duration > data["starts"][-1]
    speech = tmp_path / "speech.wav"
    speak = ("speak", "--model", "lm-mini", "--text", TEXT, "--speed", "2", "--out", speech, "--json")
    accepted = ("--technique", "speculative:adaptive=false", "--groups", out)
    spoken = paretone.data(*speak, *accepted, "--keep-profile", profile)
    assert any("accepted in groups" in note for note in spoken["notes"])
    assert paretone.data(*speak, "--profile", profile)["target_passes"] == spoken["target_passes"]
    said = paretone.refusal("group-tokens", "--cosine", "1", "--audio", audio, code=2)
    assert "There are 0 groups of several tokens" in said
    said = paretone.refusal(*speak, "--technique", NAME, code=2)
    assert "needs its file of token groups: give --groups" in said


def test_the_view_compares_groups_with_tolerances(model: LmMiniSpeech) -> None:
    (panel,) = view(model, "token-groups", sentences=1).panels
    curves = {one.name: one for one in panel.curves}
    by_token = curves["token by token"].y[0]
    assert by_token < curves["tolerance β = 0.2"].y[0] < curves["tolerance β = 0.4"].y[0]
    for size in (4, 8, 16):
        found = curves[f"groups of up to {size}"].y
        assert all(value >= by_token - 1e-3 for value in found)
    assert curves["groups of up to 16"].y[0] > curves["groups of up to 4"].y[0]
