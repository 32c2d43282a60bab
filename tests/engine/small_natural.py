"""Tiny models of natural speech with tokens, as their recipes export them, with a vocoder; what they say is noise."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import soundfile
import torch
from safetensors.torch import save_file

from paretone.models.base import Voice
from paretone.models.catalogue import entry
from paretone.models.minis.natural_vocoder import MelReader, MelReaderConfig
from paretone.models.voices import read_voice
from tests.engine.awake import awake
from tests.engine.training.toy_natural import Hummer, toy_natural_corpus
from tests.tools.natural_voices import NamedVoice, export
from tests.tools.recipes.natural_codecs import CODEC, TOKENIZER, NaturalCodec, NaturalTokenizer
from tests.tools.recipes.natural_language import SMALL_LM, SMALL_OMNI, LmOptions, NaturalLm, NaturalOmni, OmniOptions

CPU = torch.device("cpu")
READER = MelReaderConfig(width=16, inner_width=24, layers=1)
CODES, CODEBOOKS = 48, 3
LAYERS = 3


def write_lm(root: Path) -> Path:
    small = replace(SMALL_LM, hidden=32, layers=LAYERS, heads=2, key_value_heads=2, head_width=16, feed_forward=48)
    sizes = replace(TOKENIZER, width=16, inner_width=24, levels=(4, 4, 3))
    with torch.random.fork_rng():
        _export(NaturalTokenizer(toy_natural_corpus(), CPU, architecture=sizes), root / "codec")
        run = NaturalLm(toy_natural_corpus(), root / "codec", root / "work", CPU, LmOptions(), small)
    awake(run.average.module)
    run.export(root / "lm-mini")
    write_vocoder(root / entry("lm-mini").vocoder)
    return root / "lm-mini"


def write_omni(root: Path, layers: int = 5) -> Path:
    small = replace(SMALL_OMNI, hidden=32, layers=layers, heads=2, key_value_heads=1, head_width=16, feed_forward=48)
    sizes = replace(CODEC, width=16, inner_width=24, codes=12, codebooks=CODEBOOKS, numbers=6)
    with torch.random.fork_rng():
        made = NaturalCodec(toy_natural_corpus(), CPU, architecture=sizes)
        made.average.module.codec.quantiser.codebooks.normal_()
        _export(made, root / "codec")
        run = NaturalOmni(toy_natural_corpus(), root / "codec", root / "work", CPU, OmniOptions(), small)
    awake(run.average.module)
    run.export(root / "omni-mini")
    write_vocoder(root / entry("omni-mini").vocoder)
    return root / "omni-mini"


def _export(recipe: NaturalTokenizer | NaturalCodec, root: Path) -> None:
    """An untrained codec says next to nothing: this one is as loud as speech."""
    recipe.average.module.codec.decoder["leave"].weight.detach().normal_(std=0.5)
    recipe.export(root)


def write_vocoder(root: Path) -> None:
    """A mel reader; the decoder after it is the bundled one."""
    root.mkdir(exist_ok=True)
    (root / "config.json").write_text(json.dumps({"mel_reader": asdict(READER)}), encoding="utf-8")
    with torch.random.fork_rng():
        torch.manual_seed(3)
        save_file(MelReader(READER).state_dict(), root / "model.safetensors")


def write_named(root: Path, name: str = "anna", pitch: float = 1.0) -> Voice:
    """A voice as the recipe of voices exports it: noise that is called speech."""
    export(root, Hummer(frames=80), [NamedVoice(name, name.title(), pitch, 1.0)])
    return read_voice(root, name)


def write_recording(path: Path) -> Voice:
    """A user's own voice: a second of a tone that comes and goes."""
    times = np.arange(24_000) / 24_000
    soundfile.write(path, 0.2 * np.sin(2 * np.pi * 200 * times) * np.sin(np.pi * times), 24_000)
    return Voice("own", "Own", str(path), "Hello there.")
