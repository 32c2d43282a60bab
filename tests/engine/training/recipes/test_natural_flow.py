"""Recipes of the flow models of natural speech."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch
import yaml

from paretone.errors import CheckpointError
from paretone.front_end.phones import PHONES, PhoneVocabulary, phrases
from paretone.models.f5.checkpoint import NATURAL_PHONES, read_f5_checkpoint
from paretone.models.f5.dit import DiT
from paretone.models.files.checkpoints import load_strictly, read_weights
from paretone.models.megatts3.checkpoint import TRANSFORMER
from paretone.models.megatts3.config import LATENT_STRIDE
from paretone.models.minis.megatts3_mini import MegaMiniFolder
from paretone.models.minis.natural_decoder import LEVEL
from paretone.models.minis.natural_vocoder import GROUPED, ungrouped
from paretone.models.minis.speaking import WEIGHTS
from paretone.paths import resource
from paretone.setting import compatibility
from paretone.training.natural_corpus import AlignmentOptions, evened, voice_frames
from paretone.training.recipes.natural_f5 import ARCHITECTURE, VOCABULARY, NaturalF5, NaturalF5Options
from paretone.training.recipes.natural_megatts3 import ARCHITECTURE as MEGA_ARCHITECTURE
from paretone.training.recipes.natural_megatts3 import NaturalMega, NaturalMegaOptions, groups_of, latent_clip
from tests.engine.awake import awake
from tests.engine.training.learning import learning, same_weights, whole_and_resumed
from tests.engine.training.toy_natural import toy_natural_clip, toy_natural_corpus
from tests.tools.told_text import TOLD, Evaluation, ToldFrontEnd, evaluate, evened_phrases, loading, main
from tests.workload import only_in_full, workload

SMALL = replace(ARCHITECTURE, dim=64, depth=2, heads=2, dim_head=32, text_dim=32, conv_layers=1)
CPU = torch.device("cpu")
QUICK = NaturalF5Options(
    frames=300,
    matrix_rate=0.05,
    other_rate=5e-3,
    warm_up=5,
    average_decay=0.9,
    validation_items=4,
    shortest_prompt=10,
    longest_prompt=40,
)


def recipe(options: NaturalF5Options = QUICK) -> NaturalF5:
    return NaturalF5(toy_natural_corpus(), CPU, options, SMALL)


def test_the_held_out_loss_falls_however_exactly_the_text_is_aligned():
    learnt = learning(recipe, QUICK, 40, lambda number: number / 41)
    names = ("t=0.05", "t=0.40", "t=0.05, by word", "t=0.40, by word")
    assert set(learnt.taught.before) == set(names)
    learnt.assert_validation_falls(*names)


def test_of_pairs_an_excerpt_of_the_first_clip_is_seen_before_all_of_the_second():
    run = recipe()
    first, second, alone = toy_natural_corpus().training[:3]
    batch = run.laid_out([[first, second], [alone]])
    join = int(batch.joins[0])
    assert QUICK.shortest_prompt <= join <= QUICK.longest_prompt
    assert batch.lengths.tolist() == [join + second.frames, alone.frames]
    seen = batch.mel[0].numpy()
    np.testing.assert_array_equal(seen[join : join + second.frames], second.mel.astype(np.float32))
    starts = range(first.frames - join + 1)
    assert any(np.array_equal(seen[:join], first.mel[start : start + join]) for start in starts)
    np.testing.assert_array_equal(batch.ids[0, join : join + second.frames], run.tokens([second])[0])


def test_all_parameters_learn():
    run = recipe(replace(QUICK, warm_up=0))
    before = {name: value.clone() for name, value in run.model.named_parameters()}
    for number in range(1, 4):
        run.step(number, 0.1)
    assert [name for name, value in run.model.named_parameters() if torch.equal(value, before[name])] == []


def test_the_export_is_an_official_folder_laid_out_like_the_bundled_one(tmp_path: Path):
    run = recipe()
    run.step(1, 0.1)
    awake(run.average.module)
    run.export(tmp_path)
    weights = read_weights(tmp_path / "model.safetensors")
    assert int(weights.pop("step")) == 1
    assert bool(weights.pop("initted")) is True
    prefix = "ema_model.transformer."
    assert all(name.startswith(prefix) for name in weights)
    assert weights[prefix + "rotary_embed.inv_freq"].dtype == torch.float32
    assert weights[prefix + "proj_out.weight"].dtype == torch.float16
    load_strictly(DiT(SMALL), {name.removeprefix(prefix): value.float() for name, value in weights.items()}, "export")
    assert (tmp_path / "vocab.txt").read_bytes() == resource("models", "f5-mini", "vocab.txt").read_bytes()
    ours, bundled = (
        yaml.safe_load((folder / "model.yaml").read_text(encoding="utf-8"))["model"]
        for folder in (tmp_path, resource("models", "f5-mini"))
    )
    assert ours["arch"].pop("dim") == SMALL.dim
    for sizes in ("dim", "depth", "heads", "text_dim", "conv_layers"):
        ours["arch"].pop(sizes, None), bundled["arch"].pop(sizes)
    assert ours == bundled


def test_the_bundled_model_is_that_of_the_recipe_and_its_log():
    folder = resource("models", "f5-mini")
    checkpoint = read_f5_checkpoint(folder)
    assert checkpoint.config == ARCHITECTURE
    assert checkpoint.text_front_end == NATURAL_PHONES
    assert PhoneVocabulary.load(folder / "vocab.txt") == VOCABULARY
    assert {one.name for one in folder.iterdir()} == {
        "cfg_free",
        "intervals",
        "model.safetensors",
        "model.yaml",
        "training-1.jsonl",
        "training-2.jsonl",
        "vocab.txt",
    }
    header, later = (
        json.loads((folder / f"training-{number}.jsonl").read_text(encoding="utf-8").splitlines()[0])
        for number in (1, 2)
    )
    assert header["recipe"] == later["recipe"] == NaturalF5.name
    assert later["initial_weights"] in compatibility.REPLACED, "it went on from the weights that it replaced"
    # Options of the alignment were the recipe's own when this one was made.
    known = NaturalF5Options.__dataclass_fields__.keys() | AlignmentOptions.__dataclass_fields__.keys()
    assert header["options"].keys() == known - {"alignment"}


def test_a_run_starts_from_an_exported_model_and_aligns_as_at_the_end(tmp_path: Path):
    of_layout = replace(SMALL, heads=1, dim_head=64)
    first = NaturalF5(toy_natural_corpus(), CPU, QUICK, of_layout)
    for number in range(1, 4):
        first.step(number, 0.1)
    first.export(tmp_path)
    second = NaturalF5(toy_natural_corpus(), CPU, QUICK, of_layout, initial=tmp_path)
    assert second.describe()["initial_weights"] != first.describe()["initial_weights"] == "random"
    assert second.options.alignment.exact_until == 0.0
    for name, value in first.average.module.state_dict().items():
        torch.testing.assert_close(second.model.state_dict()[name], value, atol=2e-2, rtol=2e-2)
    before = second.model.proj_out.weight.clone()
    second.step(1, 0.1)
    assert not torch.equal(second.model.proj_out.weight, before)
    with pytest.raises(CheckpointError, match="is not of the model that voice-f5 makes"):
        NaturalF5(toy_natural_corpus(), CPU, QUICK, replace(of_layout, ff_mult=3), initial=tmp_path)


MEGA_SMALL = replace(
    MEGA_ARCHITECTURE,
    dim=64,
    layers=2,
    heads=1,
    ff_hidden=96,
    local_cond=32,
    phone_layers=1,
    phone_heads=2,
    phone_ff_hidden=64,
)
MEGA_QUICK = NaturalMegaOptions(
    frames=200, matrix_rate=0.05, other_rate=5e-3, warm_up=5, average_decay=0.9, validation_items=4
)


def mega(options: NaturalMegaOptions = MEGA_QUICK) -> NaturalMega:
    return NaturalMega(toy_natural_corpus(), CPU, options, MEGA_SMALL)


@pytest.mark.parametrize("make", [recipe, mega])
def test_a_resumed_run_ends_with_the_same_bits(make: type, tmp_path: Path):
    whole, resumed = whole_and_resumed(make, tmp_path)
    assert same_weights(resumed.model, whole.model)


@only_in_full("recipes")
@pytest.mark.parametrize("half", [False, True], ids=["float32", "bfloat16"])
def test_the_held_out_loss_falls_at_both_times(half: bool):
    learnt = learning(
        mega,
        replace(MEGA_QUICK, half_precision=half),
        workload(50, 30),
        lambda number: number / 51,
    )
    assert set(learnt.taught.before) == {"t=0.05", "t=0.40"}
    learnt.assert_validation_falls("t=0.05", "t=0.40")


def test_groups_hold_everything_but_the_level_and_frames_name_their_phone():
    clip = toy_natural_clip(3, 1, 61)
    frames = voice_frames(clip)
    groups = groups_of(clip)
    assert groups.shape == (30, GROUPED)
    torch.testing.assert_close(ungrouped(groups)[:, :LEVEL], frames[:60, :LEVEL])
    assert not ungrouped(groups)[:, LEVEL].any()
    clip = toy_natural_clip(0, 2)
    seen = latent_clip(clip)
    assert len(seen.phones_of_frames) == LATENT_STRIDE * seen.frames
    middles = (np.arange(len(seen.phones_of_frames)) + 0.5) / 160
    for middle, place in zip(middles, seen.phones_of_frames, strict=True):
        name, start, end = clip.phones[place - 1]
        assert start <= middle < end
        assert PHONES[seen.phones[place - 1] - 1] == name


def test_text_is_aligned_by_word_where_the_options_ask_for_it():
    options = AlignmentOptions(exact_until=0.0, inexact_share=0.0, evened_share=1.0)
    run = mega(replace(MEGA_QUICK, alignment=options))
    (seen,) = run.seen(run.clips[:1])
    np.testing.assert_array_equal(seen.phones_of_frames, latent_clip(run.clips[0].clip, evened).phones_of_frames)


def test_the_bundled_megatts3_is_that_of_the_recipe_and_its_log():
    folder = resource("models", "megatts3-mini")
    backbone = MegaMiniFolder(folder).backbone()
    assert backbone.config == MEGA_ARCHITECTURE
    files = [one for one in folder.rglob("*") if one.is_file() and one.parent.name != "intervals"]
    assert {one.relative_to(folder).as_posix() for one in files} == {
        "training.jsonl",
        "vocab.txt",
        f"{TRANSFORMER}/config.yaml",
        f"{TRANSFORMER}/{WEIGHTS}",
    }
    assert sum(one.stat().st_size for one in files) <= 30_000_000
    assert MegaMiniFolder(folder).vocabulary().phones == PHONES
    header = json.loads((folder / "training.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert header["recipe"] == NaturalMega.name
    assert header["parameters"] == sum(one.numel() for one in backbone.parameters())
    assert header["options"].keys() == set(NaturalMegaOptions.__dataclass_fields__)


def test_the_export_is_read_as_the_transformer_of_a_bundled_folder(tmp_path: Path):
    run = mega()
    run.step(1, 0.1)
    awake(run.average.module)
    run.export(tmp_path)
    assert (tmp_path / TRANSFORMER / WEIGHTS).is_file()
    assert MegaMiniFolder.is_at(tmp_path)
    backbone = MegaMiniFolder(tmp_path).backbone()
    assert backbone.config == MEGA_SMALL
    assert (tmp_path / "vocab.txt").read_text(encoding="utf-8").split() == list(PHONES)


TOLD_SMALL = replace(ARCHITECTURE, dim=64, depth=1, heads=1, dim_head=64, text_dim=32, conv_layers=1)
HELLO = (("^", 0.0, 0.1), ("h", 0.1, 0.2), ("ˈO", 0.2, 0.5), ("_", 0.5, 0.6), ("j", 0.6, 0.7), (".", 0.7, 1.0))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model as the recipe exports it, with random weights, and a voice."""
    place = tmp_path_factory.mktemp("told")
    recipe = NaturalF5(toy_natural_corpus(), torch.device("cpu"), NaturalF5Options(), TOLD_SMALL)
    with torch.no_grad():
        # A network that has learnt nothing does not look at its text.
        for weight in recipe.average.module.parameters():
            weight.add_(0.02 * torch.randn(weight.shape, generator=torch.Generator().manual_seed(1)))
    recipe.export(place / "model")
    (place / "voices").mkdir()
    times = np.arange(24_000) / 24_000
    tone = 0.2 * np.sin(2 * np.pi * 200 * times) * np.sin(np.pi * times)
    soundfile.write(place / "voices" / "toy.wav", tone, 24_000)
    (place / "voices" / "toy.json").write_text(json.dumps({"text": "Oh, you.", "phones": HELLO}), encoding="utf-8")
    return place


def test_phones_are_spread_over_words_or_phrases() -> None:
    assert [[HELLO[place][0] for place in phrase] for phrase in phrases(HELLO)] == [["h", "ˈO", "_", "j"]]
    by_word, by_phrase = evened(HELLO), evened_phrases(HELLO)
    assert [one[0] for one in by_word] == [one[0] for one in by_phrase] == [one[0] for one in HELLO]
    assert by_word[1][2] == pytest.approx(0.3) and by_word[3] == HELLO[3]
    assert [one[2] - one[1] for one in by_phrase[1:5]] == pytest.approx([0.15] * 4)
    assert by_phrase[0] == HELLO[0] and by_phrase[5] == HELLO[5]


def test_the_model_is_told_text_and_prompt_by_the_alignment(folder: Path) -> None:
    told = {name: ToldFrontEnd(folder / "model", alignment).labels(HELLO, 94) for name, alignment in TOLD.items()}
    counts = {name: np.bincount(ids, minlength=len(PHONES)) for name, ids in told.items()}
    sounds = [PHONES.index(name) for name in ("h", "ˈO", "_", "j")]
    assert counts["frame"][sounds] == pytest.approx([9.4, 28.1, 9.4, 9.4], abs=1)
    assert counts["word"][sounds] == pytest.approx([18.8, 18.8, 9.4, 9.4], abs=1)
    assert counts["phrase"][sounds] == pytest.approx([14.1] * 4, abs=1)
    assert all(len(ids) == 94 for ids in told.values())


def test_each_alignment_is_a_study_over_steps_that_resumes(folder: Path, tmp_path: Path) -> None:
    one = Evaluation(folder / "model", (1, 2), 1, 1, folder / "voices", 1, judges=("melody",))
    said: list[str] = []
    rows = evaluate(one, tmp_path, ("frame", "phrase"), said.append)
    assert [(row["told by"], row["steps"]) for row in rows] == [
        ("frame", 1),
        ("frame", 2),
        ("phrase", 1),
        ("phrase", 2),
    ]
    assert said[0].endswith("tasks are done") and not any(line.startswith("Failed") for line in said)
    sounds = {path.parent.parent.name: soundfile.read(path)[0] for path in sorted(tmp_path.glob("*.study/audio/*.wav"))}
    assert len(sounds["frame.study"]) == len(sounds["phrase.study"])
    assert not np.array_equal(sounds["frame.study"], sounds["phrase.study"])
    assert (tmp_path / "frame.study" / "report" / "report.html").is_file()
    assert evaluate(one, tmp_path, ("frame",), said.append) == rows[:2]


def test_other_models_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(CheckpointError, match="give the export of voice-f5"):
        loading("word")("megatts3-mini", device="cpu")
    arguments = ["--folder", str(tmp_path), "--work", str(tmp_path / "work"), "--told", "frame"]
    assert main(arguments) == CheckpointError.exit_code
    assert str(tmp_path) in capsys.readouterr().err
