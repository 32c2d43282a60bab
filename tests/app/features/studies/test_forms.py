"""Filled-in forms give a definition that the engine reads, or a sentence that names the field that is wrong."""

import tomllib
from dataclasses import replace

import pytest

from paretone.errors import PlainError, StudyError
from paretone.models import catalogue
from paretone.models.base import ModelInfo, Voice
from paretone.setting.knobs import Choice, Number, Switch
from paretone.setting.setting import Setting, UsedTechnique
from paretone.studies.definition import parse, to_toml
from paretone.studies.space import Range
from paretone.techniques import technique
from paretone_app.features.studies.forms import (
    Bound,
    Goals,
    OfferedKind,
    Server,
    StudyForm,
    StudyKind,
    Varied,
    definition,
    file_name,
    offered_kinds,
    seeds_of,
    values_of,
)
from paretone_app.features.studies.panel import plan_words
from tests.engine.known_model import LANGUAGE

THRESHOLD = Number("threshold", "Threshold", "How much.", 0.1, minimum=0.0, maximum=1.0, step=0.01)
STEPS = Number("steps", "Steps", "Number of thresholds.", 8, minimum=1, maximum=64, whole=True)
WAY = Choice("way", "Way", "Which.", "reuse", values=("reuse", "forecast"), titles=("Reuse (paper)", "Forecast"))
VARIED = (Varied("steps", "steps", "4..6", without=True), Varied("", "guidance", "1, 2"))
FORM = StudyForm(
    "Mine", "f5-mini", "harvard", 3, catalogue.voices("f5-mini")[:1], "0..2", 2, ("words",), {"steps": 8}, VARIED
)


def test_servers_are_typed_with_their_loads_and_fields() -> None:
    typed = Server(" http://127.0.0.1:8880 ", "1 .5/s 8", "voice = mia; extra.steps = 8, 16", True, clones=True)
    form = replace(FORM, varied=(), servers=(typed,))
    made = definition(form)
    fields = {"voice": "mia"}, {"extra.steps": [8, 16]}
    server = {"url": "http://127.0.0.1:8880", "clients": [1, 8], "rate": [0.5], "token": True, "ref_audio": True}
    assert made["server"] == [server | {"fields": fields[0], "vary": fields[1]}]
    last = parse(tomllib.loads(to_toml(made))).candidates[-1]
    assert last.name == "127.0.0.1:8880, at 0.5 requests/s, extra.steps 16"
    assert last.setting.options["ref_audio"] is True
    assert len(parse(definition(replace(form, varied=VARIED))).candidates) > 4
    for wrong, words in (
        (replace(typed, fields="8, 16"), "typed as speed = 1.0; steps = 8, 16; not as “8, 16”"),
        (replace(typed, url="box:a"), "Give the address of a server, such as http://127.*, not 'box:a'"),
        (replace(typed, url=" "), "such as http://127"),
        (replace(typed, fields="input = x"), "the server 127.0.0.1:8880 gets 'input' from the study"),
        (replace(typed, fields="rate = 2"), "rate is the server's own"),
        (replace(typed, loads="8 many"), "or requests a second, 0.5/s; not “many”"),
        (replace(typed, loads="8 0/s"), "not “0/s”"),
    ):
        with pytest.raises(PlainError, match=words) as caught:
            parse(definition(replace(form, servers=(wrong,))))
        assert "[0]" not in str(caught.value), "in the window's words"


@pytest.mark.parametrize(
    ("knob", "text", "searching", "values"),
    [
        (STEPS, "4, 8,12", False, [4, 8, 12]),
        (STEPS, "4..10 by 3, 32", False, [4, 7, 10, 32]),
        (THRESHOLD, "0.1..0.3 by 0.1", False, [0.1, 0.2, 0.3]),
        (THRESHOLD, "0.05..0.5 log", True, {"low": 0.05, "high": 0.5, "log": True}),
        (STEPS, "4..16 by 2", True, {"low": 4, "high": 16, "step": 2}),
        (STEPS, "4, 8", True, [4, 8]),
        (WAY, "reuse, Forecast", False, ["reuse", "forecast"]),
        (Switch("on", "On", "Whether.", False), "yes, no", False, [True, False]),
    ],
)
def test_values_are_read_as_they_are_typed(knob, text: str, searching: bool, values: object) -> None:
    assert values_of(knob, text, searching) == values


@pytest.mark.parametrize(
    ("knob", "text", "searching", "sentence"),
    [
        (STEPS, " , ", False, "Steps needs values"),
        (STEPS, "four", False, "not “four”"),
        (STEPS, "4, 4", False, "has a value twice"),
        (STEPS, "0, 4", False, "must lie between 1 and 64"),
        (STEPS, "4..8 log", False, "“log” is for searches"),
        (THRESHOLD, "0..1", False, "give the step, as in 0..1 by 0.01"),
        (THRESHOLD, "0..1 by 0.00001", False, "100,001 values are too many"),
        (STEPS, "4..8, 12", True, "either one range or single values"),
        (STEPS, "8..4", True, "a range must increase"),
        (THRESHOLD, "0..0.5 log", True, "a logarithmic range begins above 0"),
        (Switch("on", "On", "Whether.", False), "perhaps", False, "must be yes or no"),
    ],
)
def test_what_cannot_be_is_told_by_the_field(knob, text: str, searching: bool, sentence: str) -> None:
    with pytest.raises(StudyError, match=sentence):
        values_of(knob, text, searching)


def test_seeds_are_listed_ranged_or_the_papers() -> None:
    assert seeds_of("0, 3..5") == seeds_of("0, 3…5") == seeds_of("0; 3 … 5") == [0, 3, 4, 5]
    assert seeds_of(" Paper ") == "paper"
    for text in ("", "-1", "0..99999", "5..3", "0.."):
        with pytest.raises(StudyError, match="100,000 are too many" if "99999" in text else "whole numbers from 0"):
            seeds_of(text)


def test_a_grid_is_what_the_engine_reads() -> None:
    made = definition(FORM)
    assert made["grid"] == {"steps": {"steps": ["off", 4, 5, 6]}, "guidance": [1.0, 2.0]}
    study = parse(tomllib.loads(to_toml(made)))
    assert study.takes == 8 * 3 * 3 * 2 and {one.setting.options["steps"] for one in study.candidates} == {8}
    words = plan_words(study, 90.0)
    assert words.startswith("144 takes: 8 settings × 3 sentences × 1 voice × 3 seeds × 2 rounds. In addition 3 record")
    assert "of reference speech. About 90 seconds" in words and "own baseline" not in words
    options = parse(definition(replace(FORM, varied=(Varied("", "steps", "4, 8"),))))
    assert "each setting is its own baseline: speed-up is 1 everywhere." in plan_words(options, None)


@pytest.mark.parametrize("turned", [False, True])
def test_an_option_and_a_technique_of_one_name_can_both_be_varied(turned: bool) -> None:
    lines = (Varied("", "steps", "8, 16"), Varied("steps", "steps", "4", without=True), Varied("steps", "sway", "-1"))
    made = definition(replace(FORM, varied=lines[::-1] if turned else lines))
    study = parse(tomllib.loads(to_toml(made)))
    found = {(one.setting.options["steps"], one.setting.technique("steps") is not None) for one in study.candidates}
    assert found == {(8, False), (16, False), (8, True), (16, True)}


def test_a_search_is_what_the_engine_reads_and_brings_its_judges() -> None:
    goals = Goals(("speed_up",), (Bound("word_error_rate", "above_baseline", 0.01),), 12)
    lines = (
        Varied("first_block", "threshold", "0.1..0.5", without=True),
        Varied("steps", "steps", "4..16"),
        Varied("guidance_free", "", without=True),
    )
    made = definition(replace(FORM, goals=goals, varied=lines, judges=()))
    assert made["judges"] == ["words"]
    search = parse(tomllib.loads(to_toml(made))).search
    assert (search.trials, search.objectives) == (12, ("speed_up",))
    by_name = {one.name: one for one in search.axes}
    assert set(by_name) == {"first_block.used", "first_block.threshold", "steps.steps", "guidance_free.used"}
    assert isinstance(by_name["first_block.threshold"], Range) and by_name["first_block.used"].values == ("off", "on")
    assert "at most 1 % above the baseline's" in search.words


def test_own_voices_and_the_setting_in_setup_are_taken_along(tmp_path) -> None:
    audio = tmp_path / "me.wav"
    audio.write_bytes(b"RIFF")
    own = Voice(f"own:{audio}", "me", str(audio), "What I say.")
    knobs = {knob.name: knob.default for knob in technique("first_block").knobs}
    used = UsedTechnique("first_block", {**knobs, "threshold": 0.2})
    usual = catalogue.entry("f5-mini").options_with()["steps"]
    for steps, of_others in ((11, {"steps": 8}), (usual, {"steps": 11})):
        setting = Setting("f5-mini", catalogue.entry("f5-mini").options_with(steps=steps)).with_technique(used)
        made = definition(replace(FORM, voices=(own,), selected=setting, varied=(), options=of_others))
        assert made["voices"] == [{"audio": str(audio), "transcript": "What I say."}]
        (candidate,) = [one for one in parse(tomllib.loads(to_toml(made))).candidates if one.origin == "list"]
        assert candidate.name == "as in Setup" and candidate.setting.options["steps"] == steps
        assert candidate.setting.technique("first_block").knobs["threshold"] == 0.2


def loaded(family: str, layers: int) -> ModelInfo:
    return replace(LANGUAGE, family=family, layers=layers)


def test_kinds_of_features_have_their_fields_and_judges() -> None:
    (offered,) = offered_kinds(loaded("language", 12))
    voices = catalogue.voices("lm-mini")[:1]
    form = replace(FORM, model="lm-mini", voices=voices, offered=offered, judges=(), options={})
    study = parse(tomllib.loads(to_toml(definition(form))))
    assert study.judges == ("words",)
    assert [one.name for one in study.candidates] == ["baseline", *(f"without layer {one}" for one in range(12))]
    (elsewhere,) = offered_kinds(loaded("language", 3))
    made = definition(replace(form, offered=elsewhere, folder="/models/mine", variant="small", vocoder="/vocos"))
    assert (made["layers"], made["folder"], made["variant"], made["vocoder"]) == (3, "/models/mine", "small", "/vocos")
    for info in (None, loaded("flow", 12), loaded("language", 1)):
        assert [one.fields for one in offered_kinds(info)] == [None]
    kind = StudyKind("halves", "Halves", "", "", "", ("naturalness",), lambda info: {"halves": info.layers}, "")
    made = definition(replace(FORM, offered=OfferedKind(kind, kind.fields(loaded("flow", 4))), judges=("words",)))
    assert (made["halves"], made["judges"]) == (4, ["words", "naturalness"])
    assert not {"grid", "setting", "search"} & set(made)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"title": " "}, "needs a title"),
        ({"voices": ()}, "at least one voice"),
        ({"sentences": ""}, "Choose a text file"),
        ({"varied": ()}, "compares nothing"),
        ({"varied": (Varied("steps", "steps", "4"), Varied("steps", "steps", "5"))}, "is varied twice"),
        ({"varied": (), "goals": Goals(("speed_up",), (), 3)}, "varies nothing"),
        ({"goals": Goals((), (), 3)}, "has no goal"),
        ({"goals": Goals(("utmos", "utmos"), (), 3)}, "Both goals are the same"),
    ],
)
def test_what_is_missing_is_said(changes: dict, sentence: str) -> None:
    with pytest.raises(StudyError, match=sentence):
        definition(replace(FORM, **changes))


def test_a_title_makes_a_files_name() -> None:
    assert file_name("Steps & thresholds: F5 mini!") == "steps-thresholds-f5-mini.toml"
    assert file_name("…") == "study.toml"
