from __future__ import annotations

import json
from pathlib import Path

import torch

from paretone.front_end.natural.phones import PHONES
from paretone.models.files.checkpoints import fingerprint
from paretone.models.minis.folder import CONFIG, LAYOUT_FILE, WEIGHTS
from paretone.models.minis.lm_mini.checkpoint import LmMiniFolder
from paretone.models.minis.lm_mini.layout import Layout as LmLayout
from paretone.models.minis.natural.said import NaturalVoice
from paretone.models.minis.omni_mini.checkpoint import OmniMiniFolder
from paretone.models.minis.omni_mini.layout import Layout as OmniLayout
from paretone.paths import resource
from paretone.training.natural_corpus import voice_frames
from paretone.training.recipes.natural_lm import SMALL_LM, LmOptions, NaturalLm, layout_of
from paretone.training.recipes.natural_omni import LAYOUT, SMALL_OMNI, NaturalOmni
from paretone.training.recipes.natural_tokens import CODEC, TOKENIZER, NaturalCodec, NaturalTokenizer
from paretone.training.session import LOG
from paretone.training.spoken_tokens import VOCABULARY, voices_of
from tests.engine.training.recipes.natural_models import CPU, codec, lm, omni, tokenizer  # noqa: F401
from tests.engine.training.toy_natural import toy_natural_corpus


def test_tokens_and_phones_lie_beside_each_other(tokenizer: Path, codec: Path, tmp_path: Path):  # noqa: F811
    clips = toy_natural_corpus().training
    for clip, one in zip(clips, lm(tokenizer, tmp_path).data.training, strict=True):
        assert len(one.phones) == len(one.codes) == len(clip.latents) // 2
        assert one.phones.max() < len(PHONES)
    for clip, one in zip(clips, omni(codec, tmp_path).clips, strict=True):
        assert one.codes.shape == (len(clip.latents) // 4, CODEC.codebooks)
        assert len(one.phones) == len(one.codes)


def test_what_is_said_is_told_apart_from_the_pitch_of_the_whole_voice():
    clips = toy_natural_corpus().training
    some = [clip for clip in clips if clip.voice == "v001"]
    whole = NaturalVoice.of(torch.cat([voice_frames(clip) for clip in some]))
    assert voices_of(clips)["v001"] == whole


def test_the_exports_say_what_their_ids_mean_and_hold_their_codecs(tokenizer: Path, codec: Path, tmp_path: Path):  # noqa: F811
    lm(tokenizer, tmp_path / "lm-work").export(tmp_path / "lm")
    omni(codec, tmp_path / "omni-work").export(tmp_path / "omni")
    for folder, part in (("lm", "tokenizer"), ("omni", "codec")):
        root = tmp_path / folder
        assert (root / WEIGHTS).is_file()
        assert (root / part / WEIGHTS).is_file()
        assert json.loads((root / CONFIG).read_text(encoding="utf-8"))["architectures"]
        assert {one.name for one in root.iterdir()} == {CONFIG, LAYOUT_FILE, WEIGHTS, part}
    assert LmLayout.read(tmp_path / "lm" / LAYOUT_FILE).vocabulary.phones == PHONES
    assert OmniLayout.read(tmp_path / "omni" / LAYOUT_FILE).vocabulary.phones == PHONES


def log_header(folder: Path) -> dict:
    return json.loads((folder / LOG).read_text(encoding="utf-8").splitlines()[0])


def files_in(folder: Path) -> set[str]:
    return {one.name for one in folder.iterdir()}


def test_the_bundled_language_model_is_that_of_the_recipes_and_their_logs():
    root = resource("models", "lm-mini")
    folder, tokenizer = LmMiniFolder(root), root / "tokenizer"  # noqa: F811
    assert folder.config() == SMALL_LM
    assert folder.layout() == layout_of(VOCABULARY, TOKENIZER.codes)
    assert folder.tokenizer(CPU).config == TOKENIZER
    assert files_in(root) == {CONFIG, LAYOUT_FILE, WEIGHTS, LOG, "tokenizer", "drafts", "students", "layers.json"}
    assert files_in(tokenizer) == {CONFIG, WEIGHTS, LOG}
    assert (log_header(root)["recipe"], log_header(tokenizer)["recipe"]) == (NaturalLm.name, NaturalTokenizer.name)
    assert log_header(root)["options"].keys() == LmOptions.__dataclass_fields__.keys()


def test_the_bundled_masked_model_is_that_of_the_recipes_and_their_logs():
    root = resource("models", "omni-mini")
    folder, codec = OmniMiniFolder(root), root / "codec"  # noqa: F811
    assert folder.config().transformer == SMALL_OMNI
    assert folder.layout() == LAYOUT
    assert folder.codec().config == CODEC
    assert files_in(root) == {CONFIG, LAYOUT_FILE, WEIGHTS, LOG, "codec"}
    assert files_in(codec) == {CONFIG, WEIGHTS, LOG}
    assert (log_header(root)["recipe"], log_header(codec)["recipe"]) == (NaturalOmni.name, NaturalCodec.name)
    assert log_header(root)["codec"] == fingerprint(codec / WEIGHTS)
