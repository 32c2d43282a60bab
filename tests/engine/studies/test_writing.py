"""A definition written as TOML reads back equal, and looks as a person would write it."""

from __future__ import annotations

import json
import tomllib

import pytest

from paretone.paths import resource
from paretone.studies.definition import to_toml, with_folder
from tests.voices import FIRST

WHOLE = {
    "title": 'Steps "and" thresholds \\ δ\n\x7f\x01',
    "model": "f5-mini",
    "sentences": ["One.", "Two."],
    "voices": [FIRST, {"audio": "me.wav", "transcript": "What I say."}],
    "seeds": [0, 1],
    "limit": 3,
    "leave_one_layer_out": False,
    "options": {"steps": 16, "guidance": 2.0, "odd name": 1e30},
    "grid": {"guidance": [1.0, 2.5], "steps": {"steps": ["off", 5, 7]}, "first_block": {"used": ["off", "on"]}},
    "setting": [
        {"name": "ours", "options": {"steps": 12}, "techniques": {"first_block": {"threshold": 0.2}}},
        {"techniques": {"guidance_free": {}}},
    ],
    "search": {
        "trials": 4,
        "objectives": ["speed_up"],
        "space": {"steps": {"steps": {"low": 4, "high": 16}}, "guidance": {"low": 0.5, "high": 2.0, "log": True}},
        "constraint": [{"metric": "word_error_rate", "above_baseline": 0.01}],
    },
}


def test_everything_a_study_may_hold_reads_back_equal() -> None:
    assert tomllib.loads(to_toml(WHOLE)) == WHOLE
    several = {"grid": [{"steps": {"steps": [4, 5]}}, {"first_block.threshold": [0.1]}], "voices": [{"audio": "a"}]}
    assert tomllib.loads(to_toml(several)) == several


@pytest.mark.parametrize("name", ["f5-mini-search", "f5-mini-trade-off"])
def test_a_shipped_study_reads_back_equal(name: str) -> None:
    definition = tomllib.loads(resource("studies", f"{name}.toml").read_text(encoding="utf-8"))
    assert tomllib.loads(to_toml(definition)) == definition


def test_it_reads_as_a_person_would_write_it() -> None:
    written = to_toml({"title": "T", "grid": {"steps": {"steps": ["off", 5]}}, "search": WHOLE["search"]})
    assert written == (
        'title = "T"\n'
        "\n"
        "[grid]\n"
        'steps.steps = ["off", 5]\n'
        "\n"
        "[search]\n"
        "trials = 4\n"
        'objectives = ["speed_up"]\n'
        "\n"
        "[search.space]\n"
        "steps.steps = { low = 4, high = 16 }\n"
        "guidance = { low = 0.5, high = 2.0, log = true }\n"
        "\n"
        "[[search.constraint]]\n"
        'metric = "word_error_rate"\n'
        "above_baseline = 0.01\n"
    )


def test_what_toml_has_no_form_of_is_not_written_as_something_else() -> None:
    with pytest.raises(TypeError, match="no form of None"):
        to_toml({"title": None})


def test_another_folder_is_written_and_the_rest_stays() -> None:
    text = '# Mine.\ntitle = "A"\nfolder = "/old \\"one\\"" # here\n\n[search]\nspace.folder = "not this"\n'
    moved = with_folder(text, "a.toml", "/new/ä \\ one")
    assert moved.startswith("# Mine.") and "# here" in moved
    assert tomllib.loads(moved) == {**tomllib.loads(text), "folder": "/new/ä \\ one"}
    for odd in ('title = "A"\n"folder" = "/old"\n', 'title = "A"\n[search]\nfolder = "no"\n'):
        assert tomllib.loads(with_folder(odd, "a.toml", "/new")) == {**tomllib.loads(odd), "folder": "/new"}
    assert json.loads(with_folder('{"title": "A", "folder": "/old"}', "a.json", "/new")) == {
        "title": "A",
        "folder": "/new",
    }
