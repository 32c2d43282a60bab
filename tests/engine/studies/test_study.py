"""Study files are read and written, and mistakes in them are named."""

import json
import re
import tomllib
from math import inf
from pathlib import Path

import pytest

from paretone.errors import PlainError, StudyError
from paretone.models.catalogue import harvard_sentences, sentences
from paretone.paths import resource
from paretone.studies.definition import PAPER_SEEDS, parse, read, to_toml, with_folder
from paretone.studies.study import BASELINE, GRID
from tests.engine.studies.small import study
from tests.voices import FIRST, SECOND

SPACE = {"space": {"steps.steps": [4]}}


def test_a_grid_is_every_combination_once_and_has_its_baselines_first() -> None:
    grid = {"guidance": [1.0, 2.0], "steps": {"steps": ["off", 4, 7], "sway": [-1.0, 0.0]}}
    found = parse({"sentences": ["One."], "grid": grid})
    # Without step pruning its sway makes no difference: 2 × (1 + 2 × 2).
    assert len(found.candidates) == 10
    assert [one.origin for one in found.candidates] == [BASELINE] * 2 + [GRID] * 8
    assert {one.setting.options["guidance"] for one in found.candidates[:2]} == {1.0, 2.0}
    assert all(one.baseline in {other.key for other in found.candidates[:2]} for one in found.candidates)
    knobs = found.candidates[2].setting.technique("steps").knobs
    assert (knobs["steps"], knobs["sway"], knobs["spacing"]) == (4, -1.0, "epss")


def test_combinations_that_techniques_rule_out_are_left_out_with_the_reason() -> None:
    threshold = {"threshold": ["off", 0.1]}
    found = parse({"sentences": ["One."], "grid": {"ditreducio": threshold, "first_block": threshold}})
    assert len(found.candidates) == 3
    ((_, reason),) = found.ruled_out
    assert "DiTReducio" in reason


def test_what_is_spoken() -> None:
    found = parse({"voices": [FIRST, SECOND], "count": 3, "grid": {"steps.steps": [4]}, "seeds": "paper", "rounds": 2})
    assert [one.text for one in found.utterances] == [*harvard_sentences()[:3]] * 2
    assert [one.voice.id for one in found.utterances] == [FIRST] * 3 + [SECOND] * 3
    assert parse({"voices": 2, "count": 3, "grid": {"steps.steps": [4]}}).utterances == found.utterances
    assert found.seeds == PAPER_SEEDS == (42, 3407, 666, 3954, 3962)
    assert found.takes == 2 * 6 * 5 * 2 == sum(len(list(found.cells(one))) for one in found.candidates)
    # Tables are calibrated on a sentence that is not judged.
    assert found.calibration[0].text == sentences()[0] not in harvard_sentences()


def test_a_file(tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("One sentence.\n\nAnother.\n", encoding="utf-8")
    path = tmp_path / "study.toml"
    path.write_text('title = "Mine"\nsentences = "lines.txt"\n[grid]\nsteps.steps = [4]\n', encoding="utf-8")
    found = read(path)
    assert found.title == "Mine"
    assert [one.text for one in found.utterances] == ["One sentence.", "Another."]
    same = tmp_path / "study.json"
    same.write_text(json.dumps(found.definition), encoding="utf-8")
    assert read(same).candidates == found.candidates


def test_a_recording_of_the_users_own(tmp_path: Path) -> None:
    (tmp_path / "me.wav").write_bytes(b"")
    mine = {"audio": "me.wav", "transcript": "It is me."}
    data = {"voices": [mine], "sentences": ["One."], "grid": {"steps.steps": [4]}}
    (spoken,) = parse(data, root=tmp_path).utterances
    assert re.fullmatch("own:me.wav:[0-9a-f]{16}", spoken.voice.id) and spoken.voice.transcript == "It is me."


def test_spade_is_measured_by_leaving_layers_out() -> None:
    found = parse({"model": "lm-mini", "sentences": ["One."], "leave_one_layer_out": True, "layers": 12})
    assert len(found.candidates) == 13 and found.candidates[4].name == "without layer 3"
    assert found.candidates[4].setting.technique("spade").knobs["layers"] == "0,1,2,4,5,6,7,8,9,10,11"


def test_a_search_is_read() -> None:
    found = study(
        grid=None,
        search={
            "trials": 12,
            "objectives": ["real_time_factor", "log_mel_distance"],
            "space": {
                "steps.steps": {"low": 2, "high": 8},
                "ditreducio": {"threshold": {"low": 0.01, "high": 0.3, "log": True}},
            },
            "constraint": [
                {"metric": "word_error_rate", "above_baseline": 0.01},
                {"metric": "speaker_similarity", "below_baseline": 0.02},
            ],
        },
    )
    words, similarity = found.search.constraints
    assert words.excess(0.05, 0.03) == pytest.approx(0.01)
    assert words.excess(0.04, 0.03) == pytest.approx(0.0)
    assert similarity.excess(0.57, 0.60) == pytest.approx(0.01) and similarity.excess(0.59, 0.60) < 0
    for said in ("lowest RTF and the lowest Log-mel", "rate is at most 1 % above", "SIM-o is at least 0.02 below"):
        assert said in found.search.words
    assert found.takes == 13 * 3
    assert [one.origin for one in found.candidates] == [BASELINE]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"vocoder": "vocos"}, "F5 mini comes with its vocoder; leave out 'vocos'"),
        ({"grid": {"steps.stepz": [4]}}, "grid.steps.stepz: .* no knob named 'stepz'; did you mean 'steps'"),
        ({"grid": {"steps.steps": [4, 4]}}, "grid.steps.steps names a value twice"),
        ({"grid": {"steps.steps": [0]}}, "must lie between 1 and 128"),
        ({"grid": {}}, "grid is empty"),
        ({"grid": {"spade.depth": [4]}}, "SPADE.* is not for models like F5 mini"),
        ({"grid": None, "folder": "a\0b"}, "nothing to compare"),
        ({"setting": [{"techniqes": {}}]}, r"setting\[0\]\.techniqes is an unknown field; did you mean 'techniques'"),
        ({"voices": ["nobody"]}, f"There is no voice named 'nobody'; known voices: {FIRST}, {SECOND}"),
        ({"voices": [{"audio": "nowhere.wav"}]}, "there is no recording nowhere.wav"),
        ({"seeds": [3, -1]}, r"seeds must be whole numbers from 0, at least one of them, not \[3, -1\]"),
        ({"seeds": [1, 2**63]}, r"seeds\[1\] must be a whole number of at most 64 bits, not 9223372036854775808"),
        ({"seeds": [1, 2, 2]}, "seeds names 2 twice"),
        ({"server": {"url": "u"}}, r"server must be a list of tables, each headed \[\[server\]\], not {'url': 'u'}"),
        ({"folder": "a" * 300}, "The name aaa.* is too long for a file"),
        ({"grid": {"first_block.threshold": [inf]}}, r"grid\.first_block\.threshold\[0\] must be a number, not inf"),
        ({"search": {**SPACE, "seed": 2**32}}, "search.seed must be at most 4294967295"),
        ({"sentences": ["One.", "One."]}, "'One.' occurs twice for "),
        ({"setting": [{"name": "a"}, {"name": "b"}]}, r"setting\[1\] has the values of setting\[0\]; change or delete"),
        ({"sentences": "nowhere.txt"}, "nowhere.txt is no text file .No such file or directory"),
        ({"search": {**SPACE, "objectives": ["loudness"]}}, "neither end of"),
        ({"search": {**SPACE, "constraint": [{"metric": "clipping"}]}}, "needs exactly one of at_most"),
        ({"manifest": "list.lst"}, "manifest has its own sentences and voices"),
        ({"search": {**SPACE, "objectives": ["diversity"]}}, "asks for Diversity, which .* seeds; give two seeds"),
        (
            {"search": {"space": {"guidance": {"low": 1.0, "high": 2.0}}, "objectives": ["speed_up"]}},
            "asks for Speed-up against the baseline, .* and varies guidance; try every combination of that",
        ),
    ],
)
def test_a_study_that_makes_no_sense(changes: dict, sentence: str) -> None:
    with pytest.raises(StudyError, match=f"^study: .*{sentence}"):
        study(**changes)


def test_ten_million_combinations_are_counted_and_not_made() -> None:
    axes = {
        "guidance": [one / 10 for one in range(10)],
        "speed": [1 + one / 10 for one in range(10)],
        "steps": {"steps": [*range(1, 101)], "sway": [-one / 10 for one in range(10)]},
        "first_block": {"threshold": [one / 100 for one in range(100)]},
    }
    with pytest.raises(
        StudyError, match=r"10,000,000 takes \(10,000,000 settings × 1 utterance\); .* 116 days, .* limit in the file"
    ):
        study(grid=axes, sentences=["One."])
    with pytest.raises(StudyError, match=r"7,500 takes \(50 settings × 30 utterances × 5 seeds\); .* 2\.1 hours"):
        study(sentences="harvard", seeds="paper", limit=5000, grid={"steps.steps": [*range(1, 51)]})


def test_files_that_are_no_studies(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=r"There is no study .*nowhere\.toml"):
        read(tmp_path / "nowhere.toml")
    (tmp_path / "broken.toml").write_text("title = ")
    with pytest.raises(StudyError, match=r"broken\.toml is not a study: it is not valid TOML"):
        read(tmp_path / "broken.toml")
    (tmp_path / "list.json").write_text("[1]")
    with pytest.raises(StudyError, match=r"list\.json: a study must be a table of fields"):
        read(tmp_path / "list.json")
    (tmp_path / "large.toml").write_bytes(b"#" * (4 * 2**20 + 1))
    with pytest.raises(StudyError, match="larger than any study"):
        read(tmp_path / "large.toml")


def test_an_option_and_a_technique_of_one_name_vary_in_one_grid_with_quotes(tmp_path: Path) -> None:
    path, as_json = tmp_path / "both.toml", tmp_path / "both.json"
    path.write_text("[grid]\nsteps = [8, 16]\nsteps.steps = [4]\n", encoding="utf-8")
    as_json.write_text('{"grid": {"steps": [8, 16], "steps": {"steps": [4]}}}', encoding="utf-8")
    for one in (path, as_json):
        with pytest.raises(StudyError, match=r'quote the technique\'s knob: "steps\.steps" = '):
            read(one)
    path.write_text('sentences = ["One."]\n[grid]\nsteps = [8, 16]\n"steps.steps" = ["off", 4]\n', encoding="utf-8")
    found = [(one.setting.options["steps"], bool(one.setting.techniques)) for one in read(path).candidates]
    assert found == [(8, False), (16, False), (8, True), (16, True)]


def test_a_setting_is_named_as_published() -> None:
    higher = {"as": "T2", "techniques": {"ditreducio": {"threshold": 0.3}}}
    given = {"model": "f5-mini", "sentences": ["One."], "options": {"steps": 4}}
    found = parse({**given, "setting": [{"as": "T2"}, {"as": "w=0.67-epss"}, higher]}).candidates
    named = [one for one in found if one.name in ("T2", "w=0.67-epss")]
    assert [(one.name, one.setting.options["steps"]) for one in named] == [("T2", 32), ("w=0.67-epss", 7), ("T2", 32)]
    knobs = [one.setting.techniques[0].knobs for one in named]
    assert (knobs[0]["threshold"], knobs[0]["metric"]) == (0.1, "relative")
    assert (knobs[1]["weight"], knobs[2]["threshold"]) == (0.67, 0.3)
    with pytest.raises(PlainError, match="T9"):
        parse({**given, "setting": [{"as": "T9"}]})


COUNTED = re.compile(r"(\d+) settings × .*?= ([\d,]+) takes")
"""What the comment on top of a shipped study says."""


@pytest.mark.parametrize("path", sorted(resource("studies").glob("*.toml")), ids=lambda path: path.stem)
def test_the_studies_that_ship_can_be_run_and_say_how_long_they_are(path: Path) -> None:
    said, found = COUNTED.search(path.read_text(encoding="utf-8")), read(path)
    if said is not None:
        assert (int(said[1]), int(said[2].replace(",", ""))) == (len(found.candidates), found.takes)
    else:
        assert found.takes <= 500, "a longer one says so beforehand"
    judged = {one.text for one in found.utterances}
    assert judged.isdisjoint({one.text for one in found.calibration}), "nothing is calibrated on what is judged"
    by_kind = {"curves": {("words", "naturalness", "voice", "melody")}, "faults": {("faults", "words")}}
    assert found.judges in by_kind.get(path.stem.rpartition("-")[2], by_kind["curves"] | {("words",)})
    fewest = {"example": 7, "f5-mini-product": 5, "lm-mini-layers": 13, "lm-mini-ablation": 6}.get(
        path.stem, 14 if path.stem.endswith("-faults") else 20
    )
    assert len(found.candidates) >= fewest or found.search is not None
    if path.stem.endswith("trade-off"):
        assert len(found.candidates) >= 60
        assert len({one.technique for each in found.candidates for one in each.setting.techniques}) >= 3


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


def test_another_folder_is_written_and_the_rest_stays() -> None:
    text = '# Mine.\ntitle = "A"\nfolder = "/old \\"one\\"" # here\n\n[search]\nspace.folder = "not this"\n'
    moved = with_folder(text, "a.toml", "/new/ä \\ one")
    assert moved.startswith("# Mine.") and "# here" in moved
    assert tomllib.loads(moved) == {**tomllib.loads(text), "folder": "/new/ä \\ one"}
    for odd in ('title = "A"\n"folder" = "/old"\n', 'title = "A"\n[search]\nfolder = "no"\n'):
        assert tomllib.loads(with_folder(odd, "a.toml", "/new")) == {**tomllib.loads(odd), "folder": "/new"}
    given = '{"title": "A", "folder": "/old"}'
    assert json.loads(with_folder(given, "a.json", "/new")) == {"title": "A", "folder": "/new"}
