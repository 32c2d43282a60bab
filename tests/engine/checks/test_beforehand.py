"""Faults of prompts and settings that collapse are said before anything is spoken."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from paretone import device
from paretone.audio.resampling import resample
from paretone.checks.beforehand import COLLAPSES, PROMPT_FAULTS, collapses, prompt_faults
from paretone.checks.faults import fault
from paretone.files import write_wav
from paretone.measure.evaluation.judges import heard, judge_named
from paretone.models.voices import examined, own_voice, shipped_voices
from paretone.setting.knobs import Values
from paretone.setting.setting import Setting, UsedTechnique
from paretone.techniques.resolving import foreseen, known
from tests.engine.command_line import Console
from tests.peers import faults as bench
from tests.peers.damage import DAMAGES, PROMPT_DAMAGES
from tests.workload import workload

FINDS = {one.name: one for one in PROMPT_FAULTS}


@pytest.fixture(scope="module")
def clean() -> list[bench.Clean]:
    return bench.shipped()[: workload(5, 3)]


@pytest.mark.parametrize("damage", [one for one in PROMPT_DAMAGES if one.fault in FINDS], ids=lambda one: one.fault)
def test_a_damaged_prompt_is_found_and_a_clean_one_is_not(damage: bench.Damage, clean: list[bench.Clean]) -> None:
    one = FINDS[damage.fault]
    assert bench.detection(one, damage, 1, clean) == (len(clean), len(clean))
    assert not any(bench.found(each.speech, one) for each in clean)


def test_a_recording_is_examined_for_faults_with_what_to_do(tmp_path: Path, clean: list[bench.Clean]) -> None:
    speech, path = clean[0].speech, tmp_path / "mine.wav"
    write_wav(path, np.pad(speech.sound, (2 * speech.rate, 0)), speech.rate)
    (sentence,) = prompt_faults(own_voice(path, speech.text))
    assert sentence == f"mine.wav: It begins with 2.1 s of silence. {FINDS['late'].about}"
    assert sentence in examined(path, speech.text).notes
    assert prompt_faults(shipped_voices()[0]) == (), "shipped voices are not checked again"
    write_wav(path, speech.sound[: speech.rate], speech.rate)
    assert prompt_faults(own_voice(path, speech.text))[0].startswith("mine.wav: It lasts 1.0 s.")
    write_wav(path, resample(speech.sound, speech.rate, 8000), 8000)
    (sentence,) = prompt_faults(own_voice(path, speech.text))
    assert sentence.startswith("mine.wav: At 8000 samples per second it has nothing above 4 kHz.")


def test_it_is_said_before_speech_is_written(tmp_path: Path, console: Console, clean: list[bench.Clean]) -> None:
    speech, path = clean[0].speech, tmp_path / "mine.wav"
    write_wav(path, np.pad(speech.sound, (speech.rate, 0)), speech.rate)
    given = ["--voice", path, "--transcript", speech.text, "--text", "Rice is good.", "--steps", "1"]
    printed = console("speak", *given, "--guidance", "0", "--out", tmp_path / "a.wav")
    assert printed.code == 0
    assert COLLAPSES["no guidance"][1] in printed.err and "It begins with" in printed.err
    assert "It begins with" not in printed.out, "once"


def setting(model: str, **techniques: dict[str, object]) -> Setting:
    return Setting(model, techniques=tuple(UsedTechnique(name, knobs) for name, knobs in techniques.items()))


def test_settings_that_collapse_are_named_by_their_plans() -> None:
    def said(given: Setting, **changes: object) -> list[str]:
        info = replace(known(given.model), **changes)
        return [name for name, (_, sentence) in COLLAPSES.items() if sentence in collapses(foreseen(given, info), info)]

    assert said(setting("omni-mini", guidance_stride={}, fewer_steps={"steps": 7})) == ["guidance stride"]
    assert said(setting("omni-mini", guidance_stride={})) == []
    assert said(setting("f5-mini", first_block={"threshold": 0.4}, steps={"steps": 4})) == ["stale cache"]
    assert said(setting("f5-mini", first_block={"threshold": 0.4})) == []
    assert said(setting("f5-mini", saturating_guidance={"threshold": 2.0})) == ["stale guidance"]
    assert said(setting("f5-mini", saturating_guidance={"threshold": 0.5})) == []
    assert said(Setting("megatts3-mini", Values(intelligibility=0.0))) == ["text taken away"]
    assert said(Setting("lm-mini", Values(speed=1.6))) == ["too fast"] and said(Setting("lm-mini")) == []
    halved = setting("f5-mini", precision={"precision": "float16"})
    assert said(halved) == ["float16"] and said(halved, precision="float16") == []
    short = setting("f5-mini", precision={"precision": "bfloat16"})
    assert said(short) == [] and said(short, lacking=(("bfloat16", "…"),)) == ["bfloat16"]
    info = replace(known("f5-mini"), lacking=(("card", "It is too old."),))
    assert collapses(foreseen(setting("f5-mini"), info), info) == ("It is too old.",)


@pytest.mark.parametrize(
    ("capability", "built", "runs"),
    [
        ((8, 6), ["sm_75", "sm_80", "sm_90"], True),
        ((6, 1), ["sm_75", "sm_80", "sm_90"], False),
        ((12, 0), ["sm_80", "sm_90a"], False),
        ((12, 0), ["sm_80", "compute_90"], True),
        ((7, 5), ["sm_80"], False),
        ((9, 4), ["gfx942"], True),
    ],
)
def test_a_card_needs_code_for_its_architecture(capability: tuple[int, int], built: list[str], runs: bool) -> None:
    assert device.runs_on(capability, built) is runs


def test_a_card_without_code_is_not_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    card = SimpleNamespace(
        is_available=lambda: True,
        get_device_capability=lambda: (6, 1),
        get_arch_list=lambda: ["sm_75"],
        get_device_name=lambda: "GTX 1080",
    )
    monkeypatch.setattr(device.torch, "cuda", card)
    assert device.choose("auto").type != "cuda"
    (said,) = {dict(device.lacking("cpu"))["card"]}
    assert said.startswith("GTX 1080 (compute capability 6.1) is not used: this PyTorch has code for sm_75 only.")
    with pytest.raises(device.DeviceError, match="compute capability"):
        device.choose("cuda")


def test_a_study_says_it_before_its_first_take(tmp_path: Path, console: Console) -> None:
    said, grid = {"sentences": ["Rice is good."], "voices": ["anna"]}, [{"guidance": [0.0], "steps.steps": [1]}]
    study = {"title": "Beforehand", "model": "f5-mini", **said, "grid": grid}
    path = tmp_path / "study.json"
    path.write_text(json.dumps(study), encoding="utf-8")
    done = console("study", "run", path)
    assert done.code == 0
    assert 0 <= done.err.find(f"2 of 2 settings: {COLLAPSES['no guidance'][1]}") < done.err.find("Making takes")


def test_a_judge_of_faults_knows_the_seams(clean: list[bench.Clean]) -> None:
    (click,) = (one for one in DAMAGES if one.fault == "click")
    heights = (click.do(clean[0].speech, height, np.random.default_rng(3)) for height in np.geomspace(0.05, 4, 60))
    seamed = next(one for one in heights if one and bench.found(one, fault("click")))
    given, judge = ("", shipped_voices()[0], seamed.samples, seamed.rate), judge_named("faults").ready(())
    assert "click" in heard(judge, *given, seamed.seams).figures
    assert "click" not in judge.hear(*given).figures
