"""Settings as published: what the sources say, what is offered for which model, and what a setting has otherwise."""

import argparse
import re
from dataclasses import replace
from typing import Any

import pytest

from paretone.commands import arguments
from paretone.commands.compare import typed_side
from paretone.errors import SettingError
from paretone.models.catalogue import entry, models
from paretone.setting.knobs import Values, checked
from paretone.setting.setting import Published, Setting, UsedTechnique
from paretone.techniques import technique, techniques
from paretone.techniques.admission import fault
from paretone.techniques.published import as_published, chosen, comparisons, main, offered, options_of


def parsed(model: str, *typed: str) -> Setting:
    parser = argparse.ArgumentParser()
    arguments.add_model(parser)
    arguments.add_sampler(parser)
    arguments.add_techniques(parser.add_argument_group())
    return arguments.setting(parser.parse_args(["--model", model, *typed]), model)


@pytest.mark.parametrize(
    ("model", "deltas", "options"),
    [
        ("F5TTS_v1_Base", (0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3), {"steps": 32, "guidance": 2.0, "sway": -1.0}),
        ("MegaTTS3", (0, 0.2, 0.4, 0.6, 0.8, 1.0, 1.2), {"steps": 32, "intelligibility": 1.6, "similarity": 2.5}),
    ],
)
def test_thresholds_of_table_1(model: str, deltas: tuple[float, ...], options: dict[str, float]) -> None:
    found = offered(technique("ditreducio"), entry(model).options)
    assert [one.name for one in found] == [f"T{place}" for place in range(7)]
    assert tuple(one.knobs["threshold"] for one in found) == deltas
    assert all(one.knobs["metric"] == "relative" and one.knobs["marked"] == 10 for one in found)
    official = ("combined", "first_half") if model == "MegaTTS3" else ("branches", "conditional")
    assert all((one.knobs["compare"], one.knobs["check_phase"]) == official for one in found)
    assert all(dict(one.options).items() >= options.items() for one in found)
    recommended = main(found)
    assert recommended is not None and recommended.name == "T4"


@pytest.mark.parametrize(
    ("model", "typed", "knobs", "options"),
    [
        ("F5TTS_Base", "guidance_free --as w=0.67-epss", {"weight": 0.67}, {"steps": 7, "spacing": "epss"}),
        ("F5TTS_Base", "guidance_free --as w=0.7-cfg", {"weight": 0.7, "guidance": 2.0}, {"steps": 32}),
        ("CosyVoice2-0.5B", "spade --as original-layers", {"depth": 0, "targets": "original"}, {"repeats": "2025"}),
        (
            "CosyVoice2-0.5B",
            "speculative",
            {"tolerance": 0.4, "draft_length": 3, "adaptive": False, "verification": "token", "tolerated": "published"},
            {"repeats": "2025"},
        ),
        ("omni-mini", "fewer_steps", {"steps": 32, "shift": 0.1}, {"steps": 32, "guidance": 2.0, "layer_penalty": 5.0}),
        (
            "OmniVoice",
            "blockwise",
            {"block": 32, "first_block": 32, "first_steps": 8, "later_steps": 32, "look_ahead": 0, "adaptive": False},
            {"shift": 0.1},
        ),
    ],
)
def test_one_option_sets_as_published(model: str, typed: str, knobs: dict[str, object], options: dict[str, object]):
    name, *named = typed.split()
    setting = parsed(model, "--technique", name, *(named or ("--as", "published")))
    used = setting.technique(name)
    assert used is not None and dict(used.knobs).items() >= knobs.items()
    assert dict(setting.options).items() >= options.items()
    (found,) = comparisons(setting)
    assert [one for one in found.differences if not one.startswith("model ")] == []


def test_the_name_alone_finds_its_technique() -> None:
    setting = parsed("lm-mini", "--as", "half", "--seed", "3")
    assert [one.technique for one in setting.techniques] == ["spade"]
    assert parsed("f5-mini", "--as", "T2").options["steps"] == 32  # The table is read with the model.


def test_what_is_given_stays_and_is_said() -> None:
    setting = parsed("F5TTS_v1_Base", "--technique", "guidance_free:weight=0.5", "--as", "published", "--steps", "16")
    (found,) = comparisons(setting)
    assert (setting.options["steps"], setting.technique("guidance_free").knobs["weight"]) == (16, 0.5)
    assert found.differences == ("Guidance weight w 0.5, not 0.67", "Steps 16, not 32")
    said = "CFG-free is set as w=0.67 (arXiv 2504.20334, table I, 32 steps), except Guidance weight w 0.5, not 0.67;"
    assert found.sentence.startswith(said)
    assert found.to_json()["differences"] == ["Guidance weight w 0.5, not 0.67", "Steps 16, not 32"]


def test_a_setting_is_compared_with_the_nearest_published_one() -> None:
    plain = Setting("f5-mini", entry("f5-mini").options_with())
    (found,) = comparisons(plain.with_technique(UsedTechnique("ditreducio", Values(metric="relative", threshold=0.1))))
    assert found.published.name == "T2" and found.differences[:2] == ("Steps 12, not 32", "Guidance g 0.7, not 2")
    assert found.differences[2].startswith("model F5 mini, not F5-TTS v1 Base or")
    declared = technique("ditreducio")
    (official,) = comparisons(as_published(plain, "ditreducio", offered(declared, entry("f5-mini").options)[2]))
    assert [one.partition(" ")[0] for one in official.differences] == ["model"]
    # Grids and branches as they run, whichever technique makes them so.
    steps = UsedTechnique("steps", Values(steps=7))
    both = as_published(plain, "guidance_free", chosen("f5-mini", "w=0.67-epss", ["guidance_free"])["guidance_free"])
    (free,) = comparisons(Setting(both.model, both.options.replace(steps=32), both.techniques).with_technique(steps))
    assert free.published.name == "w=0.67-epss" and free.differences[0] == "Step pruning as well"


def test_a_side_of_a_comparison_is_set_as_published() -> None:
    side = typed_side("technique=speculative,as=beta=0.2", "lm-mini")
    assert side.setting.technique("speculative").knobs["tolerance"] == 0.2
    both = typed_side("technique=guidance_free,guidance=1", "f5-mini", as_published="published")
    assert (both.setting.options["steps"], both.setting.options["guidance"]) == (32, 1)
    assert typed_side("as=beta=0.1", "lm-mini").setting.technique("speculative").knobs["tolerance"] == 0.1
    filed = typed_side("table=here.json,as=T3", "f5-mini")
    assert not filed.setting.techniques
    assert filed.setting.options["steps"] == 32 and filed.knobs["ditreducio"]["threshold"] == 0.15


@pytest.mark.parametrize(
    ("model", "name", "used", "said"),
    [
        ("f5-mini", "T9", ["ditreducio"], "DiTReducio has no setting 'T9' for F5 mini; it has T0, T1, T2"),
        ("f5-mini", "w=0.7-eps", ["guidance_free"], "did you mean 'w=0.7-epss'?"),
        ("f5-mini", "T9", [], "No technique has a setting 'T9' for F5 mini; there are T0, T1"),
        ("f5-mini", "half", [], "No technique has a setting 'half'"),
        ("f5-mini", "published", [], "There is no technique to use as published: name one, such as ditreducio."),
        ("f5-mini", "published", ["steps"], "Step pruning has no published setting for F5 mini"),
    ],
)
def test_names_that_are_not_there(model: str, name: str, used: list[str], said: str) -> None:
    with pytest.raises(SettingError, match=re.escape(said)):
        chosen(model, name, used)


def test_two_that_contradict_are_refused() -> None:
    each = {"ditreducio": "T4", "guidance_free": "w=0.67-epss"}
    found = {name: chosen("f5-mini", one, [name])[name] for name, one in each.items()}
    with pytest.raises(SettingError, match=r"steps 7, that of another technique 32; use one of the two"):
        options_of(found)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"knobs": Values(weigth=0.5)}, "published setting 'one' has no knob named 'weigth'; did you mean 'weight'?"),
        ({"knobs": Values(weight=5)}, "Guidance weight must lie between 0.05 and 0.95, not at 5"),
        ({"models": ("F5",)}, "'one' must have models of the catalogue (f5-mini, "),
    ],
)
def test_a_faulty_declaration_is_refused(changes: dict[str, Any], said: str) -> None:
    one = replace(Published("one", "table 1", ("f5-mini",), Values(weight=0.5)), **changes)
    assert said in fault(replace(technique("guidance_free"), published=(one,)), "own:TECHNIQUE")
    assert "published must be a tuple" in fault(replace(technique("steps"), published=[one]), "own:TECHNIQUE")


def test_what_is_declared_can_be_set() -> None:
    known = {one.id for one in models()}
    for declared in techniques():
        for model in models():
            there = offered(declared, model.options) if model.family in declared.families else ()
            assert len({one.name for one in there}) == len(there)
            for one in there:
                checked(declared.knobs, one.knobs, declared.title)
                checked(model.options, model.options_with(**one.options), model.title)
        assert all(known.issuperset(one.models) for one in declared.published)
