"""CFG-free weights in the official layout."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from paretone import bench
from paretone.bench import bundled
from paretone.errors import CheckpointError, SettingError
from paretone.export.delivery import deliver
from paretone.measure.fidelity import log_mel_distance
from paretone.measure.intelligibility import WordErrors
from paretone.models import load_model
from paretone.models.base import Utterance, WeightSet
from paretone.models.catalogue import entry, voices
from paretone.models.f5.checkpoint import read_f5_checkpoint
from paretone.models.f5.config import BackboneConfig
from paretone.models.f5.dit import DiT
from paretone.models.f5.unett import UNetT
from paretone.models.files.checkpoints import metadata_of
from paretone.setting.knobs import Values
from paretone.setting.plan import NotPrepared
from paretone.setting.setting import Setting, UsedTechnique
from paretone.speaking import synthesise
from paretone.techniques.guidance_free import view
from paretone.techniques.guidance_free.bench import guidance_free, guided, paired_difference
from paretone.techniques.guidance_free.exported_weights import GuidanceFreeWeights, cfg_free_metadata
from paretone.views import compute_view
from paretone.views.quality import judge_of, judged_utterances, word_errors
from tests.engine import small_speech
from tests.engine.export.test_f5_tts import MODEL, WEIGHTS
from tests.engine.small_speech import VOICE, save_cfg_free, setting
from tests.engine.views.viewing import SAID, STEPS, computed, load, task, write_weights
from tests.workload import only_in_full

METADATA = {"cfg_free": "true", "weight": "0.5", "equivalent_guidance": "1", "method": "distillation"}
METADATA |= {"base": "0" * 64, "steps": "120"}


def test_weights_are_official_and_say_what_they_are(tmp_path: Path) -> None:
    out, trained = tmp_path / "out", tmp_path / "w-0.50.safetensors"
    save_file(load_file(WEIGHTS), trained, METADATA)
    weights = GuidanceFreeWeights.read(trained, read_f5_checkpoint(MODEL.folder))
    written = deliver(out, weights.contents(), lambda done, total: None)
    companions = [one for one in ("model.yaml", "vocab.txt") if (MODEL.folder / one).is_file()]
    assert [path.name for path in written] == ["model_cfg_free_w0.50.safetensors", *companions]
    assert metadata_of(written[0]) == METADATA
    again = deliver(tmp_path / "again", weights.contents(), lambda done, total: None)
    assert [path.read_bytes() for path in again] == [path.read_bytes() for path in written], "the same to the byte"
    assert deliver(out, weights.contents(), lambda done, total: None) == written
    before, after = load_file(WEIGHTS), load_file(written[0])
    assert after.pop("step").item() == 120
    del before["step"]
    assert before.keys() == after.keys() and all(torch.equal(before[name], after[name]) for name in before)

    loaded = load_model("f5-mini", folder=str(out))
    assert loaded.info.trained_guidance == 0.5, "what is exported is a model of its own"
    spoken = synthesise(loaded, "Rice.", voices()[0], Setting("f5-mini", MODEL.options_with(steps=2, guidance=2.0)))
    assert any("more on top would be too much" in note for note in spoken.notes)


def test_other_weights_are_no_cfg_free_ones(tmp_path: Path) -> None:
    assert cfg_free_metadata(WEIGHTS) is None
    with pytest.raises(CheckpointError, match="not CFG-free by its metadata"):
        GuidanceFreeWeights.read(WEIGHTS, read_f5_checkpoint(MODEL.folder))
    path = tmp_path / "weights.safetensors"
    save_file({"ema_model.transformer.proj_out.bias": torch.zeros(3)}, path, METADATA)
    with pytest.raises(CheckpointError, match=str(path)):
        GuidanceFreeWeights.read(path, read_f5_checkpoint(MODEL.folder))
    save_file({"x": torch.zeros(1)}, path, {"cfg_free": "true", "weight": "0.5"})
    with pytest.raises(CheckpointError, match="lacks 'equivalent_guidance'"):
        cfg_free_metadata(path)
    with pytest.raises(SettingError, match="has no CFG-free weights to compare; train some"):
        compute_view("guidance-weight", task(load()))


def _errors(*edits: int) -> WordErrors:
    return WordErrors(edits, (8,) * len(edits), ("",) * len(edits))


def test_settings_of_the_bench_are_paired():
    one, other = [_errors(0, 1, 0), _errors(2, 0)], [_errors(1, 1, 0), _errors(2, 1)]
    more, low, high = paired_difference(one, other)
    assert more == pytest.approx(2 / 40) and 0 <= low <= more <= high
    assert paired_difference(one, one) == (0, 0, 0)
    baseline = Setting("f5-mini", entry("f5-mini").options_with(steps=7), seed=3)
    weights = WeightSet("w-0.67.safetensors", "f" * 64, 0.666667, "model-guidance")
    two = guided(baseline, weights.equivalent_guidance)
    assert two.options["guidance"] == pytest.approx(2, abs=1e-4)
    one = guidance_free(baseline, weights)
    assert (one.seed, one.options) == (two.seed, two.options)
    (used,) = one.techniques
    assert used.artefact == weights.fingerprint and used.knobs["weight"] == 0.67


@only_in_full("speech")
@pytest.mark.slow
@pytest.mark.usefixtures("short_prompts", "only_words")
def test_one_branch_is_faster_and_is_understood(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    pytest.importorskip("pocketsphinx")
    pytest.importorskip("jiwer")
    command = "guidance-free --sentences 1 --voices 5 --rounds 2 --steps 5 --weights 0.5 --json"
    command = [*command.split(), "--text", bundled.SENTENCE]
    assert bench.main(command) == 0
    data = json.loads(capsys.readouterr().out)
    rows = {row["speech"]: row for row in data["rows"]}
    assert rows["CFG-free, w = 0.50"]["branches"] == 1 and rows["guidance 1"]["branches"] == 2
    assert rows["CFG-free, w = 0.50"]["word error rate"] < 0.3
    assert data["headline"] == rows["CFG-free, w = 0.50"]["backbone speed-up"]


def test_the_effect_of_w(tmp_path: Path) -> None:
    model = load(write_weights(tmp_path))
    figure = computed(model, "guidance-weight")
    distances = {curve.name: curve for curve in figure.panels[0].curves}
    sentences = judged_utterances(SAID, 2)

    def spoken(**options: object) -> list:
        of = setting(STEPS, **options)
        return [synthesise(model, one.text, one.voice, of).trace.mel for one in sentences]

    used = setting(STEPS).with_technique(UsedTechnique("guidance_free", Values(weight=0.5)))
    free = [synthesise(model, one.text, one.voice, used).trace.mel for one in sentences]
    guided, alone = spoken(guidance=1.0), spoken(guidance=0.0)
    for name, mels in ((view.CFG_FREE, free), (view.ALONE, alone)):
        expected = sum(log_mel_distance(one, two) for one, two in zip(guided, mels, strict=True)) / 2
        assert distances[name].x == (0.5,) and distances[name].y == pytest.approx((expected,))
    # As the sampler option is labelled; s is sway's.
    assert figure.panels[0].title.startswith("Distance to guidance g =")
    assert [one.y.label for one in figure.panels[1:]] == ["Word error rate (%)", "Speaker similarity"]
    assert all(len(one.curves) == 3 and not one.curves[0].reference for one in figure.panels[1:]), "as in figure 1"
    assert "from guidance g = 1.00" in figure.caption
    assert "no checkpoint for w = 0.1, 0.2, 0.3, 0.4, 0.6" in figure.caption


def test_guidance_on_top_is_the_guided_velocity_of_the_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = load(write_weights(tmp_path))
    free = UsedTechnique("guidance_free", Values(weight=0.5, guidance=2.0))
    heard = synthesise(model, SAID.text, SAID.voice, setting(STEPS).with_technique(free))
    make = small_speech.make_backbone

    def same_weights(seed: int, config: BackboneConfig) -> DiT | UNetT:
        made = make(2, config)
        make(seed, config)  # Everything drawn after it stays the same.
        return made

    monkeypatch.setattr(small_speech, "make_backbone", same_weights)
    wanted = synthesise(load(), SAID.text, SAID.voice, setting(STEPS, guidance=2.0))
    np.testing.assert_array_equal(heard.samples, wanted.samples)
    assert any("on top of the 1 in the CFG-free weights" in note for note in heard.notes)
    assert heard.measurements.ops_ratio == pytest.approx(1)


def test_weights_over_training_are_those_of_each_stage(tmp_path: Path) -> None:
    pytest.importorskip("pocketsphinx")
    write_weights(tmp_path)
    for name, steps, stage in (("a", 2, "true"), ("b", 9, "false")):
        save_cfg_free(tmp_path / f"{name}.safetensors", 0.5, steps=str(steps), stage=stage)
    save_cfg_free(tmp_path / "another-run.safetensors", 0.5, steps="400")
    (tmp_path / "another-run.training.jsonl").write_text('{"recipe": "cfg-free", "run": "another"}\n')
    for path in tmp_path.glob("half*.safetensors"):
        path.unlink()
    model = load(tmp_path)
    of = replace(task(model), utterance=Utterance("One.", replace(VOICE, audio=voices()[0].audio)))
    figure = compute_view("weights-over-training", replace(of, knobs=Values(sentences=1)))
    curves = {curve.name: curve for curve in figure.panels[0].curves}
    training = curves["w = 0.50 (model-guidance)"]
    assert training.x == (0.0, 2.0, 9.0)
    assert curves["guided at equal strength, g = 1.00"].x == (0.0, 9.0)
    (sentence,) = judged_utterances(SAID, 1)
    judge = judge_of((sentence,))
    alone = synthesise(model, sentence.text, sentence.voice, setting(STEPS, guidance=0.0))
    assert training.y[0] == pytest.approx(100 * word_errors(judge, (sentence,), [alone]).rate)
    assert "after 9 steps" in figure.caption
    (tmp_path / "a.safetensors").unlink()
    with pytest.raises(NotPrepared, match="train some with stages"):
        computed(load(tmp_path), "weights-over-training", sentences=1)
