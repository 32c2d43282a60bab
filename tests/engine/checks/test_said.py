"""Everyone who makes or hears takes says their faults: commands, studies, Python."""

from pathlib import Path

import numpy as np
import pytest

import paretone
from paretone.errors import FaultError
from paretone.files import write_wav
from paretone.measure.evaluation.judges import judge_named
from paretone.measure.metrics import metric
from paretone.models.voices import shipped_voices
from paretone.setting.take import Measurements, Metrics
from tests.engine.command_line import Console
from tests.peers import faults as bench
from tests.workload import only_in_full

TEXT = "Rice is good."


def test_judge_names_the_faulty_file_and_strict_makes_it_an_exit_code(tmp_path: Path, console: Console) -> None:
    speech = bench.shipped()[0].speech
    damaged = speech.sound.copy()
    damaged[30000:30500] = 0.0
    good, bad = tmp_path / "good.wav", tmp_path / "bad.wav"
    write_wav(good, speech.sound, speech.rate)
    write_wav(bad, damaged, speech.rate)
    assert console.data("judge", good, "--strict", "--json")["files"][0]["found"] == []
    clean, faulty = console.data("judge", good, bad, "--json")["files"]
    assert (clean["faulty_takes"], faulty["faulty_takes"]) == (0.0, 1.0)
    assert [(one["fault"], one["start"]) for one in faulty["found"]] == [("gap", pytest.approx(1.25, abs=0.01))]
    printed = console("judge", good, bad, "--strict")
    assert printed.code == FaultError.exit_code == 12 and f"Faults were found: {bad} (Gap)." in printed.err
    assert "No sound for 21 ms." in printed.out


def test_the_judge_of_studies_counts_faults_and_their_figure_is_a_share() -> None:
    voice, speech = shipped_voices()[0], bench.shipped()[0].speech
    judge = judge_named("faults").ready((voice.transcript,))
    clean = judge.hear("", voice, speech.sound, speech.rate).figures
    harmed = judge.hear("", voice, np.concatenate([speech.sound, np.zeros(48000)]), speech.rate).figures
    assert clean == {"faults": 0.0} and harmed == {"faults": 1.0, "silence": 1.0}
    figure = metric("faulty_takes")
    assert figure.verdict is not None and figure.of is not None
    assert [figure.verdict(one) for one in (clean, harmed, {})] == [0.0, 1.0, None]
    assert [figure.of(Measurements(), Metrics(faults=one), None) for one in (0.0, 3.0, None)] == [0.0, 1.0, None]
    assert judge_named("faults").metrics == ("faulty_takes",)


def test_a_take_says_its_faults_in_python_and_as_a_command(tmp_path: Path, console: Console) -> None:
    speech = paretone.load("f5-mini", device="cpu").speak(TEXT, options={"steps": 2, "guidance": 0.0})
    assert speech.checked is speech.checked
    out = ["--out", tmp_path / "take.wav", "--strict", "--json"]
    said = console("speak", "--text", TEXT, "--steps", "2", "--guidance", "0", *out)
    assert said.data["faults"] == [one.to_json() for one in speech.checked.findings]
    assert said.code == (FaultError.exit_code if said.data["faults"] else 0)


@only_in_full("speech")
@pytest.mark.slow
def test_compare_says_the_faults_of_both_sides(console: Console) -> None:
    given = ["compare", "steps=4", "steps=2", "--model", "f5-mini", "--text", TEXT, "--repeats", "1", "--json"]
    assert set(console.data(*given)["faults"]) == {"a", "b"}
