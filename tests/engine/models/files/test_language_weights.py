"""Drafts and students of a speech language model, and its own layers pruned: found, refused, used."""

import gc
import itertools
import weakref
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from paretone.errors import CheckpointError
from paretone.models.files.checkpoints import fingerprint, metadata_of
from paretone.models.files.trained_weights import find_weight_sets, trained_guidance
from paretone.models.minis.lm_mini import LmMiniSpeech
from paretone.sampling.autoregressive import decode
from paretone.sampling.draft_length import AdaptiveLength
from paretone.sampling.tokens import Uniforms
from paretone.setting.plan import NotPrepared
from paretone.setting.profile import Profile
from paretone.techniques import problem, resolve, spade, speculative
from paretone.techniques.resolving import knobs_of
from paretone.techniques.speculative import decoding
from tests.engine.small_language import LAYERS, write_draft, write_model, write_student
from tests.engine.small_speech import FINGERPRINT, save_cfg_free
from tests.engine.speaking import drafted, load, script_of, setting, shallow, spoken, write_all
from tests.same_sound import assert_same_sound


def test_sets_are_found_by_weight_and_only_those_of_the_base(tmp_path: Path) -> None:
    own, bundled = tmp_path / "own", tmp_path / "bundled"
    own.mkdir()
    bundled.mkdir()
    save_cfg_free(own / "a.safetensors", 2 / 3)
    save_cfg_free(bundled / "z.safetensors", 0.5)
    save_cfg_free(bundled / "other.safetensors", 0.5, base="f" * 64)
    found = find_weight_sets([bundled, own, tmp_path / "missing"], FINGERPRINT)
    assert [round(one.weight, 3) for one in found] == [0.5, 0.667]
    assert [Path(one.path).name for one in found] == ["z.safetensors", "a.safetensors"]
    assert found[0].fingerprint == fingerprint(bundled / "z.safetensors")
    assert found[0].method == "model-guidance"
    assert [one.equivalent_guidance for one in found] == pytest.approx([1.0, 2.0], abs=1e-4)


@pytest.mark.parametrize(
    "metadata",
    [
        None,
        *({"cfg_free": free, "weight": weight} for free, weight in (("false", "0.5"), ("true", "nan"), ("true", "1"))),
    ],
)
def test_what_does_not_say_so_is_no_cfg_free_checkpoint(tmp_path: Path, metadata: dict | None) -> None:
    path = tmp_path / "model.safetensors"
    save_file({"x": torch.zeros(1)}, path, metadata)
    assert trained_guidance(path) is None


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> LmMiniSpeech:
    return load(write_all(tmp_path_factory.mktemp("language") / "model"))


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    return write_model(tmp_path / "model")


# --- Drafts ----------------------------------------------------------------------------------------------------------
def test_greedy_speculation_says_the_same(model: LmMiniSpeech) -> None:
    plain = spoken(model, setting(temperature=0.0))
    fast = spoken(model, setting(drafted(draft_length=3, adaptive=False), temperature=0.0))
    assert fast.trace.decoding.tokens == plain.trace.decoding.tokens
    assert_same_sound(fast.samples, plain.samples)
    assert fast.measurements.target_passes < plain.measurements.target_passes
    assert fast.measurements.tokens_per_pass > 1
    assert fast.measurements.ops_ratio > 1
    assert fast.measurements.evaluations > fast.measurements.target_passes
    assert {"accepted", "bonus"} <= set(fast.trace.decoding.outcomes)
    assert all(len(cycle.drafted) <= 3 for cycle in fast.trace.decoding.cycles)


def lengths(model: LmMiniSpeech) -> list[AdaptiveLength]:
    return list(model.memory.get(decoding.__name__, ()))


def test_lengths_adapt_from_one_sentence_to_the_next(model: LmMiniSpeech) -> None:
    """By default; what was learnt about one tolerance is not used for another."""
    before = len(lengths(model))
    spoken(model, setting(drafted(tolerance=0.1)))
    first = lengths(model)[-1]
    assert first.acceptances[0] != 0.5
    spoken(model, setting(drafted(tolerance=0.1)))
    assert lengths(model)[-1] is first
    spoken(model, setting(drafted(tolerance=0.2)))
    assert lengths(model)[-1] is not first and len(lengths(model)) == before + 2
    spoken(model, setting(drafted(draft_length=2, adaptive=False)))
    assert len(lengths(model)) == before + 2


def test_the_voice_is_read_once(model: LmMiniSpeech) -> None:
    """The second sentence has the voice's part of the prompt; the same request says the same, to the bit."""
    prefixes = model.own.tokens.prefixes
    (first, before), (again, after) = ((spoken(model, setting(temperature=0.0)), len(prefixes)) for _ in range(2))
    assert before == after > 0
    assert np.array_equal(first.samples, again.samples)


def test_a_student_drafts_with_its_own_tables(model: LmMiniSpeech) -> None:
    plain = spoken(model, setting(temperature=0.0))
    by_student = spoken(model, setting(drafted(draft="student", adaptive=False), temperature=0.0))
    assert by_student.trace.decoding.tokens == plain.trace.decoding.tokens


def test_what_is_not_there_yet_is_said(bare: Path) -> None:
    info = load(bare).info
    assert "LM mini has no trained draft to propose tokens" in problem(info, setting(drafted()))
    assert "LM mini has no trained student to propose tokens" in problem(info, setting(drafted(draft="student")))
    assert "has not been measured yet" in problem(info, setting(shallow(depth=2, recovery="none")))
    assert problem(info, setting(shallow(layers="0,2", recovery="none"))) is None


def test_weights_of_another_checkpoint_are_refused(bare: Path) -> None:
    draft, student = write_draft(bare, base="f" * 64), write_student(bare, base="f" * 64)
    info = load(bare).info
    assert info.drafts == info.students == ()
    for chosen, path in ((setting(drafted()), draft), (setting(shallow(depth=2)), student)):
        assert f"{path} was made from another checkpoint" in problem(info, chosen)


def test_weights_that_come_later_are_found(bare: Path) -> None:
    model = load(bare)
    write_draft(bare)
    write_student(bare)
    assert problem(model.info, setting(drafted()))
    info = model.look_for_weights()
    assert [one.retained for one in info.drafts] == [(0, 2)] == [one.retained for one in info.students]
    assert problem(info, setting(drafted())) is None


def test_the_recovered_student_comes_before_its_stages(bare: Path) -> None:
    stage, recovered = write_student(bare, (0, 2), "minutes:1", 1.0), write_student(bare, (0, 2))
    first = stage.rename(stage.with_name("a.safetensors"))
    assert [one.path for one in load(bare).info.students] == [str(recovered), str(first)]


def test_a_draft_that_holds_other_layers_than_it_says(bare: Path) -> None:
    path = write_draft(bare)
    save_file(load_file(path), path, metadata_of(path) | {"trained": "[2]"})
    with pytest.raises(CheckpointError, match="does not hold the layers that it says"):
        spoken(load(bare), setting(drafted()))


# --- Fewer layers ----------------------------------------------------------------------------------------------------
def test_pruned_only_takes_the_most_important_layers(model: LmMiniSpeech) -> None:
    pruned, by_hand, others = (
        spoken(model, setting(shallow(**knobs, recovery="none"), temperature=0.0))
        for knobs in ({"depth": 2}, {"layers": "0,2"}, {"layers": "1"})
    )
    assert pruned.trace.decoding.tokens == by_hand.trace.decoding.tokens != others.trace.decoding.tokens
    assert 0.6 < pruned.measurements.ops_ratio < 0.8
    assert 0.3 < others.measurements.ops_ratio < 0.5


def test_a_draft_may_propose_to_a_student(model: LmMiniSpeech) -> None:
    student = setting(shallow(depth=2), temperature=0.0)
    both = student.with_technique(drafted(adaptive=False))
    assert spoken(model, both).trace.decoding.tokens == spoken(model, student).trace.decoding.tokens
    assert "cannot propose tokens for itself" in problem(model.info, student.with_technique(drafted(draft="student")))


def test_a_draft_speaks_alone_as_in_the_papers_table(model: LmMiniSpeech) -> None:
    alone, verified = setting(drafted(alone=True), temperature=0.0), setting(drafted(adaptive=False), temperature=0.0)
    script = script_of(model, alone)
    assert script.network.draft is None
    assert script.network.target.tokens is script_of(model, verified).network.draft.tokens, "the draft itself"
    said, plain = spoken(model, alone), spoken(model, setting(temperature=0.0))
    assert said.trace.decoding.tokens != plain.trace.decoding.tokens == spoken(model, verified).trace.decoding.tokens
    assert said.measurements.ops_ratio < 1.0 and not any(cycle.drafted for cycle in said.trace.decoding.cycles)
    assert all("At speed" in one for one in said.notes), "nothing else is said"
    assert "the draft speaks alone" in speculative.describe(knobs_of(drafted(alone=True)))
    works = model.internals(script)
    by_hand = decode(works.networks.target.tokens, works.request, works.sampler, Uniforms(script.seed), lambda: None)
    assert said.trace.decoding.tokens == tuple(token for cycle in by_hand for token in cycle.tokens)
    assert "speaks alone; do without" in problem(model.info, alone.with_technique(shallow(depth=2)))
    with pytest.raises(NotPrepared, match="no trained draft"):
        resolve(replace(model.info, drafts=()), alone)


@pytest.mark.parametrize(
    ("knobs", "reason"),
    [
        ({"depth": 1}, "No fully retrained student of LM mini with 1 layer has been trained yet"),
        ({"depth": 2, "targets": "original"}, "with 2 layers, learned from the original layers, has been trained yet"),
        ({"depth": 5}, "LM mini has 3 layers, so it cannot keep 5"),
        ({"depth": 3}, "there is nothing to prune"),
        ({"layers": "0,1", "recovery": "partly"}, "No briefly retrained student of LM mini with the layers 0, 1"),
    ],
)
def test_students_that_are_not_there(model: LmMiniSpeech, knobs: dict, reason: str) -> None:
    assert reason in problem(model.info, setting(shallow(**knobs)))


def test_few_networks_are_kept(model: LmMiniSpeech) -> None:
    layers = (",".join(kept) for count in (2, 1) for kept in itertools.combinations(map(str, range(LAYERS)), count))
    plans = [resolve(model.info, setting(shallow(layers=one, recovery="none"))) for one in layers]
    made = [weakref.ref(model.networks(plan).target.tokens) for plan in plans]
    gc.collect()
    assert [one() is not None for one in made] == [False] * 3 + [True] * 3


def test_a_profile_names_what_was_trained(model: LmMiniSpeech) -> None:
    profile = Profile.of(setting(drafted(), shallow(depth=2)), model.info)
    assert profile.setting.technique(speculative.NAME).artefact == model.info.drafts[0].fingerprint
    assert profile.setting.technique(spade.NAME).artefact in {one.fingerprint for one in model.info.students}
    profile.check(model.info)
    pruned = Profile.of(setting(shallow(depth=2, recovery="none")), model.info)
    assert pruned.setting.technique(spade.NAME).artefact == ""
