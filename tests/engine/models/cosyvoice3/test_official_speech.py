"""CosyVoice 3's release as the engine uses it, from its folder to audio.

Its parts are small and have random weights, in the official layout: what they say is noise, but every step is real.
"""

import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from paretone.errors import TextError
from paretone.export.language_bundle import token_names
from paretone.models import catalogue, load_model
from paretone.models.base import Voice
from paretone.models.cosyvoice2.adapter import CosyDecoder, CosySpeech
from paretone.models.cosyvoice2.front_end import CosyPrompt
from paretone.models.cosyvoice2.language_model import COSYVOICE_3, PromptIds
from paretone.models.cosyvoice3.checkpoint import COSYVOICE3
from paretone.models.cosyvoice3.config import NAME, PREFIX, REINFORCED
from paretone.models.files.checkpoints import fingerprint
from paretone.training.requests import Follower
from paretone.training.teachers import read_teacher
from tests.engine.models import official
from tests.engine.models.cosyvoice2.small_release import CODES
from tests.engine.models.cosyvoice2.small_release import write_release as write_release_2
from tests.engine.models.cosyvoice2.test_official_speech import (
    TEXT,
    assert_drafts_and_students,
    assert_streamed,
    speak,
    speech_tokens,
)
from tests.engine.models.cosyvoice3.small_release import language_weights
from tests.engine.models.official import load, refused

setting = partial(official.setting, NAME)


def prompt_of(model: CosySpeech, voice: Voice, **options: object) -> CosyPrompt:
    prompt, _ = model.prepare(TEXT, voice, setting(**options).options, lambda: None)
    return prompt


def test_it_speaks_while_it_decodes_and_sounds_as_at_once(model: CosySpeech, voice: Voice) -> None:
    assert_streamed(model, voice, setting)


def test_every_prompt_begins_as_the_model_was_trained(model: CosySpeech, voice: Voice) -> None:
    """Upstream fails, or streams for ever, without the prefix; here nobody types it."""
    encode = model.tokenizer.encode
    mark, transcript = "<|endofprompt|>", encode(voice.transcript)
    plain = prompt_of(model, voice)
    assert plain.ids.text == (*encode(PREFIX + mark), *transcript) and plain.ids.speech
    told = prompt_of(model, voice, instruction="Softly.")
    assert told.ids.text == (*encode(f"{PREFIX} Softly.{mark}"), *transcript) and told.notes == plain.notes
    assert plain.tokens_per_text == told.tokens_per_text, "the prefix says nothing of the pace"
    instructed = prompt_of(model, voice, mode="instruct", instruction="Softly.")
    assert instructed.ids == PromptIds(tuple(encode(f"{PREFIX} Softly.{mark}")))
    assert prompt_of(model, voice, mode="cross_lingual").ids == PromptIds(tuple(encode(PREFIX + mark)))
    with pytest.raises(TextError, match="inserted automatically"):
        speak(model, voice, f"Go{mark} on.", setting())


def test_steps_and_guidance_of_the_flow_are_options(model: CosySpeech, voice: Voice) -> None:
    rows: list[int] = []
    last = model.flow.estimator.proj_out
    hook = last.register_forward_hook(lambda network, given, velocity: rows.append(len(velocity)))
    found = {}
    for name, options in {"plain": {}, "few": {"flow_steps": 2}, "alone": {"flow_guidance": 0.0}}.items():
        rows.clear()
        tokens = speech_tokens(speak(model, voice, TEXT, setting(stream=False, **options)))
        found[name] = tokens, list(rows)
    hook.remove()
    assert found["plain"][1] == [2] * 10 and found["few"][1] == [2] * 2 and found["alone"][1] == [1] * 10
    assert len({tokens for tokens, _ in found.values()}) == 1


def test_long_silence_is_shortened_before_the_flow(model: CosySpeech, voice: Voice) -> None:
    prompt = prompt_of(model, voice).voice.acoustic
    tokens = [5, *[1, 2] * 5, 7, 1, 9]
    kept = [5, 1, 2, 1, 2, 1, 7, 1, 9]

    def heard(given: list[int], edition: object = COSYVOICE3) -> np.ndarray:
        decoder = CosyDecoder(model.flow, model.vocoder, prompt, edition=edition)
        return np.concatenate([*(decoder.push([token]) for token in given), decoder.finish()])

    short = heard(tokens)
    assert len(short) == 960 * len(kept)
    np.testing.assert_array_equal(short, heard(kept, replace(COSYVOICE3, silent=frozenset())))
    decoder = CosyDecoder(model.flow, model.vocoder, prompt, edition=COSYVOICE3)
    np.testing.assert_allclose(decoder.whole(tokens).samples, short, atol=1e-4)


def test_the_reinforced_language_model_is_a_variant(folder: Path, voice: Voice, model: CosySpeech) -> None:
    reinforced = load_model(NAME, folder=str(folder), variant=REINFORCED, device="cpu")
    assert reinforced.info.variant == REINFORCED and reinforced.info.fingerprint == fingerprint(folder / "llm.rl.pt")
    said, plain = (speech_tokens(speak(one, voice, TEXT, setting())) for one in (reinforced, model))
    assert said != plain


def test_drafts_and_students_of_the_release_are_used(folder: Path, voice: Voice, tmp_path: Path) -> None:
    root, weights = Path(shutil.copytree(folder, tmp_path / NAME)), language_weights()
    student = {name: value.clone() for name, value in weights.items() if ".layers.2." not in name}
    assert_drafts_and_students(root, weights, student, voice, setting())


def test_its_sequences_for_training_begin_with_the_prefix(folder: Path, model: CosySpeech) -> None:
    teacher = read_teacher(NAME, str(folder), Follower())
    row = teacher.row(teacher.read("Go on."), (3, 4))
    ids, first = model.official_ids, model.official_ids.first_code
    start, task = (first + ids.codes + mark for mark in COSYVOICE_3.marks)
    assert row.ids == (start, *model.tokenizer.encode(f"{PREFIX}<|endofprompt|>Go on."), task, first + 3, first + 4)
    assert row.labels[-3:] == (3, 4, CODES + COSYVOICE_3.end)
    marks, stops = token_names(COSYVOICE_3)
    assert not marks and len(set(stops)) == COSYVOICE_3.stops and stops[:2] == ("<|sos|>", "<|end_of_speech|>")


def test_a_fine_tune_needs_only_what_it_trained(
    folder: Path, voice: Voice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARETONE_DATA", str(tmp_path / "data"))
    tuned = tmp_path / "tuned"
    tuned.mkdir()
    wrapped = {f"module.{name}": value for name, value in language_weights(seed=9).items()}
    torch.save({"module": wrapped | {"epoch": 3, "step": 900}, "lr": 0.1}, tuned / "llm.pt")
    assert catalogue.id_of(str(tuned)) == catalogue.recognised(folder).id == NAME, "by its weights"
    refused(NAME, tuned, r"is taken from .*Fun-CosyVoice3")
    shutil.copytree(folder, catalogue.entry(NAME).folder)
    for name in ("llm.pt", "epoch_3_whole.pt", "llm.rl.pt"):
        next(tuned.iterdir()).rename(tuned / name)
        assert catalogue.id_of(str(tuned)) == NAME
        assert load(NAME, tuned).info.checkpoint == str(tuned / name)
    assert len(speak(load(NAME, tuned), voice, TEXT, setting()).samples)
    shutil.copy(tuned / "llm.rl.pt", tuned / "epoch_4_whole.pt")
    refused(NAME, tuned, r"has no llm\.pt, but several files .* \(llm\.rl\.pt, epoch_4_whole\.pt\): rename one to llm")
    save_file({name: one for name, one in language_weights().items() if "lm_head" not in name}, tuned / "a.safetensors")
    for path in tuned.glob("*.pt"):
        path.unlink()
    assert load(NAME, tuned).info.checkpoint == str(tuned / "a.safetensors")


@pytest.mark.parametrize("name", ["llm.pt", "llm.rl.pt", "flow.pt"])
def test_weights_say_which_version_they_are_of(folder: Path, name: str, tmp_path: Path) -> None:
    """A fine-tune without a description, beside nothing else; in the old format of files as well."""
    other = tmp_path / "other"
    write_release_2(other)
    places = tmp_path / "a", tmp_path / "b"
    for place, release in zip(places, (folder, other), strict=True):
        place.mkdir()
        if (release / name).is_file():
            torch.save(
                torch.load(release / name, weights_only=True),
                place / name,
                _use_new_zipfile_serialization=name == "llm.pt",
            )
    assert catalogue.id_of(str(places[0])) == NAME
    refused("CosyVoice2-0.5B", places[0], "holds weights of CosyVoice 3, not of CosyVoice 2: choose CosyVoice 3")
    if any(places[1].iterdir()):
        assert catalogue.id_of(str(places[1])) == "CosyVoice2-0.5B"
        refused(NAME, places[1], "holds weights of CosyVoice 2")


def test_weights_of_neither_version_are_refused(folder: Path, tmp_path: Path) -> None:
    """As CosyVoice 1's, which has another transformer."""
    root = tmp_path / "first"
    write_release_2(root)
    torch.save(
        {"text_embedding.weight": torch.ones(4, 4), "speech_embedding.weight": torch.ones(9, 4)}, root / "llm.pt"
    )
    refused("CosyVoice2-0.5B", root, "weights of CosyVoice 1, .* choose CosyVoice 2 or 3; Paretone does not have the")
    torch.save({"a.weight": torch.ones(4, 4)}, root / "llm.pt")
    refused("CosyVoice2-0.5B", root, r"llm\.pt lacks the weight .*: it is not a language model of CosyVoice 2 or 3")
    shutil.copy(folder / "flow.pt", root)
    (root / "llm.pt").write_bytes(b"PK\x03\x04 damaged")
    assert catalogue.id_of(str(root)) == NAME, "by the flow"


def test_what_is_missing_or_of_the_other_release_is_named(folder: Path, tmp_path: Path) -> None:
    root = Path(shutil.copytree(folder, tmp_path / NAME))
    (root / COSYVOICE3.tokenizer).unlink()
    refused(NAME, root, r"release of CosyVoice 3: it lacks speech_tokenizer_v3\.onnx")
    shutil.copy(folder / COSYVOICE3.tokenizer, root / COSYVOICE3.tokenizer)
    weights = torch.load(root / "llm.pt", weights_only=True)
    torch.save(weights | {"llm_decoder.bias": torch.zeros(CODES + COSYVOICE_3.stops)}, root / "llm.pt")
    refused(NAME, root, r"llm_decoder\.bias")
