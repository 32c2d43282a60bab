"""Every layout of the catalogue at small sizes, under every technique: each has a roofline with all components."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from paretone.errors import SettingError
from paretone.measure.roofline.ceilings import BOUNDS
from paretone.measure.roofline.measuring import RooflineTarget, measure_roofline
from paretone.measure.roofline.report import (
    ATTENTION,
    DECODER,
    EMBEDDING,
    FEED_FORWARD,
    HEAD,
    NORMS,
    PROJECTIONS,
    REST,
    SAMPLING,
    RooflineReport,
)
from paretone.models import load_model
from paretone.models.base import LANGUAGE, SpeechModel, Utterance, Voice
from paretone.models.catalogue import entry, models, voice
from paretone.models.llasa import adapter as llasa
from paretone.models.megatts3 import graphemes
from paretone.observer import Observer
from paretone.sampling.actions import SkipAction
from paretone.setting.knobs import NO_VALUES, defaults
from paretone.setting.setting import Artefact, Setting, UsedTechnique
from paretone.studies.hooks import preparer
from paretone.techniques import applying_to, compatibility_of, ditreducio
from paretone.techniques.base import Technique
from paretone.techniques.ditreducio.table import StrategyTable
from tests.engine import small_omni_mini, small_speech, speaking
from tests.engine.measure.roofline.known import keep_known_ceilings
from tests.engine.models.cosyvoice2 import small_release as cosyvoice2
from tests.engine.models.cosyvoice3 import small_release as cosyvoice3
from tests.engine.models.llasa import small_release as small_llasa
from tests.engine.models.megatts3 import small_release as megatts3
from tests.engine.models.megatts3.small_release import write_voice
from tests.engine.models.minis.small_megatts3_mini import write_bundled
from tests.engine.models.omnivoice import small_release as omnivoice
from tests.parity.fixtures import golden_folder
from tests.workload import workload

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

Layout = tuple[SpeechModel, Voice, Setting]
COMPONENTS = {EMBEDDING, PROJECTIONS, ATTENTION, FEED_FORWARD, NORMS, HEAD, SAMPLING, DECODER}
TEXT = workload("A short sentence.", "Oh.")


def small_flow(variant: str) -> Layout:
    model = small_speech.load("small", "", variant, "cpu", lambda text: None, lambda: None)
    return model, small_speech.VOICE, small_speech.setting(4)


def mini(name: str, write: Callable[[Path], object], root: Path) -> Layout:
    write(root / name)
    chosen = Setting(name, entry(name).options_with(steps=4))
    return load_model(name, folder=str(root / name), device="cpu"), voice("", name), chosen


def megatts3_release(root: Path) -> Layout:
    pytest.importorskip("transformers")
    folder = root / "MegaTTS3"
    megatts3.write_release(folder)
    write_voice(folder / "voices" / "some_noise.wav")
    chosen = Setting("MegaTTS3", entry("MegaTTS3").options_with(steps=3))
    return load_model("MegaTTS3", folder=str(folder), device="cpu"), voice("", "MegaTTS3", str(folder)), chosen


def cosyvoice(name: str, write: Callable[[Path], None], root: Path) -> Layout:
    for package in ("onnx", "onnxruntime", "tokenizers"):
        pytest.importorskip(package)
    write(root / name)
    model = load_model(name, folder=str(root / name), device="cpu")
    own = Voice("own", "Own", str(write_voice(root / "own.wav", latents=False)), "What was said.")
    return model, own, Setting(name, entry(name).options_with(), seed=3)


def llasa_release(root: Path) -> Layout:
    pytest.importorskip("tokenizers")
    small_llasa.write_release(root)
    model = load_model("Llasa-1B", folder=str(root / "Llasa-1B"), device="cpu")
    return model, Voice("none", "None", "", ""), Setting("Llasa-1B", entry("Llasa-1B").options_with(clone=False))


def qwen3_release(root: Path) -> Layout:
    pytest.importorskip("tokenizers")
    folder = str(golden_folder() / "qwen3" / "qwen3_release_custom_voice")
    model = load_model(QWEN3, folder=folder, device="cpu")
    return model, voice("ryan", QWEN3, folder), Setting(QWEN3, entry(QWEN3).options_with())


QWEN3 = "Qwen3-TTS-12Hz-1.7B-CustomVoice"
LAYERS = 5
"""Of masked models: as many as it takes to leave one out in the middle."""


def omnivoice_release(root: Path) -> Layout:
    release = omnivoice.write_release(root / "OmniVoice", layers=LAYERS)
    return omnivoice.load(release), voice("", "OmniVoice"), omnivoice.setting()


LAYOUTS: dict[str, Callable[[Path], Layout]] = {
    "f5-mini": lambda root: small_flow(""),
    "E2TTS_Base": lambda root: small_flow("flat"),
    "megatts3-mini": partial(mini, "megatts3-mini", write_bundled),
    "MegaTTS3": megatts3_release,
    "lm-mini": lambda root: (speaking.load(speaking.write_all(root / "lm")), voice("", "lm-mini"), speaking.setting()),
    "CosyVoice2-0.5B": partial(cosyvoice, "CosyVoice2-0.5B", cosyvoice2.write_release),
    "Fun-CosyVoice3-0.5B": partial(cosyvoice, "Fun-CosyVoice3-0.5B", cosyvoice3.write_release),
    "Llasa-1B": llasa_release,
    QWEN3: qwen3_release,
    "omni-mini": partial(mini, "omni-mini", partial(small_omni_mini.write_model, layers=LAYERS)),
    "OmniVoice": omnivoice_release,
}
SAME = {"F5TTS_v1_Base": "f5-mini", "F5TTS_Base": "f5-mini", "Llasa-3B": "Llasa-1B", "Llasa-8B": "Llasa-1B"}
SAME |= {one.id: QWEN3 for one in models() if one.codes_per_token > 1}
"""Models of the catalogue that are one of these at another size."""
UNPREPARED = {"average_velocity", "searched_grid"}
REFUSED: dict[str, set[str]] = {
    "f5-mini": {"guidance_free", *UNPREPARED},
    "E2TTS_Base": {"guidance_free", "error_curve", "first_block", "dual_block_cache", *UNPREPARED},
    "megatts3-mini": {"graphs", "separate_guidance", *UNPREPARED},
    "MegaTTS3": {"graphs", "separate_guidance", *UNPREPARED},
    "lm-mini": {"graphs"},
    "CosyVoice2-0.5B": {"graphs", "speculative", "spade", "average_velocity", "guidance_free"},
    "Fun-CosyVoice3-0.5B": {"graphs", "speculative", "spade", "average_velocity", "guidance_free"},
    "Llasa-1B": {"graphs", "speculative", "spade"},
    QWEN3: {"graphs", "speculative", "spade", "token_groups"},
    "omni-mini": {"graphs"},
    "OmniVoice": {"graphs"},
}
"""Techniques that need weights or grids which have not been made here, other layers or guidance, or a graphics card;
where only the small model's loader does not know its device, CUDA graphs cannot be recorded and it runs without."""
KNOBS: dict[str, dict[str, object]] = {"spade": {"depth": 2}, "weight_only": {"anyway": True}}
"""Knobs that differ from their defaults: small models have few layers, and gain by chance."""


@pytest.fixture(autouse=True)
def _known_ceilings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PARETONE_DATA", str(tmp_path / "own"))
    # Random weights end when they like, or not at all.
    monkeypatch.setattr(llasa, "CONTEXT", 200)
    monkeypatch.setattr(graphemes, "LONGEST", 6)
    keep_known_ceilings()


def test_every_model_of_the_catalogue_is_here() -> None:
    assert {SAME.get(one.id, one.id) for one in models()} == set(LAYOUTS)


@pytest.mark.parametrize("layout", workload(list(LAYOUTS), ["f5-mini", "Llasa-1B"]))
def test_every_technique_of_a_layout_has_a_roofline(layout: str, tmp_path: Path) -> None:
    model, who, plain = LAYOUTS[layout](tmp_path)
    require_whole(measured(model, who, plain), layout)
    refused = set()
    for one in applying_to(model.info.family, model.info.knobs, model.info.mel_flow):
        if one.name == "compilation":  # It takes minutes.
            continue
        try:
            chosen, tables = with_technique(model, who, plain, one)
            report = measured(model, who, chosen, *tables)
        except SettingError:
            refused.add(one.name)
        else:
            require_whole(report, f"{layout} with {one.title}")
    assert refused == REFUSED[layout]


def measured(model: SpeechModel, who: Voice, chosen: Setting, *tables: Artefact) -> RooflineReport:
    return measure_roofline(RooflineTarget(model, Utterance(TEXT, who), chosen, tables), Observer(), rounds=1)


def with_technique(
    model: SpeechModel, who: Voice, plain: Setting, one: Technique
) -> tuple[Setting, tuple[Artefact, ...]]:
    if one.artefact is not None and model.info.family == LANGUAGE:
        used = UsedTechnique(one.name, defaults(one.knobs))
        found = preparer(one.name)(model, (Utterance(TEXT, who),), plain.with_technique(used), Observer())
        return plain.with_technique(replace(used, artefact=found.fingerprint)), (found,)
    if one.name != ditreducio.TECHNIQUE.name:
        return plain.with_technique(UsedTechnique(one.name, defaults(one.knobs).replace(**KNOBS.get(one.name, {})))), ()
    # Every other step of the upper layers is that of the one before.
    steps = int(plain.options["steps"])
    row = tuple(SkipAction.TS if step % 2 else SkipAction.NONE for step in range(steps))
    rows = (SkipAction.NONE,) * steps, *[row] * (model.info.layers - 1)
    table = StrategyTable(compatibility_of(model.info, plain), rows)
    return plain.with_technique(UsedTechnique(one.name, NO_VALUES, table.fingerprint)), (table,)


def require_whole(report: RooflineReport, what: str) -> None:
    found = {one.name for _, one in report.components()}
    assert found >= COMPONENTS, f"{what} lacks {COMPONENTS - found}"
    for phase, one in report.components():
        assert one.seconds is not None, f"{what}: {one.name} was not measured"
        if one.name != REST:
            assert one.bound(report.ceilings, phase.graphed) in BOUNDS, f"{what}: {one.name}"
            assert one.launches > 0 or one.name == SAMPLING, f"{what}: {one.name}"
    assert all(phase.launches > 0 for phase in report.phases)
    assert any(len(phase.layer_launches) > 1 and min(phase.layer_launches) > 0 for phase in report.phases), what
    json.dumps(report.to_json(), allow_nan=False)
