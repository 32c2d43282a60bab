"""Every kind of file that the engine reads, damaged at random: a sentence or a result, never a traceback, code that
runs, or a wait. A thousand files where tests are thorough, a few dozen otherwise."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch

from paretone.audio.recording import read_recording
from paretone.errors import PlainError
from paretone.export.copied import paretone_profile
from paretone.export.targets import export
from paretone.listening import trials
from paretone.measure.roofline import ceilings
from paretone.models import load_model
from paretone.models.f5.checkpoint import read_f5_checkpoint
from paretone.models.files.checkpoints import read_weights
from paretone.models.files.config_file import ConfigFile
from paretone.models.files.layer_importance import FILE as IMPORTANCE
from paretone.models.files.layer_importance import read_record
from paretone.models.files.trained_weights import find_language_weights
from paretone.models.megatts3.front_end import prepare_recording, read_latents
from paretone.models.minis.lm_mini import LmMiniFolder
from paretone.models.minis.omni_mini import OmniMiniFolder
from paretone.models.networks.vocos import Vocos
from paretone.models.qwen3_tts.checkpoint import OfficialFolder
from paretone.models.voices import PLACE, read_voice
from paretone.observer import Observer
from paretone.paths import resource
from paretone.setting.compatibility import Compatibility
from paretone.setting.knobs import Values
from paretone.setting.library import Library
from paretone.setting.profile import Profile, artefact_in, read_artefact
from paretone.studies import definition, evaluation_sets, results, samples
from paretone.techniques import searched_grid, token_groups
from paretone.techniques import weight_only as weights_record
from paretone.techniques.ditreducio import table_commands
from paretone.techniques.ditreducio.table import StrategyTable
from paretone.techniques.searched_grid import PlacedGrid
from paretone.techniques.searched_grid.searching import Journal
from paretone.techniques.token_groups.groups import SPACES, Groups
from paretone.techniques.weight_only import Measured
from paretone.training.features import PhoneReader, prepare
from paretone.training.manifest import read_manifest
from paretone.training.session import LOG, Budget, Intervals, TrainingSession, read_log
from paretone.training.spoken_tokens import VOCABULARY, SpokenTokens, read_tokens, write_tokens
from tests.engine import small_language, small_omni_mini, small_packed, small_vocos
from tests.engine.export.test_f5_tts import profile
from tests.engine.listening.listeners import abx_trial
from tests.engine.measure.roofline.known import ceilings as known_ceilings
from tests.engine.models.cosyvoice2 import small_release as small_cosyvoice2
from tests.engine.models.files.test_layer_importance import DIVERGENCES, record
from tests.engine.models.llasa import small_release as small_llasa
from tests.engine.models.megatts3 import small_release as small_megatts3
from tests.engine.models.omnivoice import small_release as small_omnivoice
from tests.engine.mutating import Kind, check, void
from tests.engine.small_packed import packing
from tests.engine.test_first_edition import PROFILES, WRITTEN
from tests.engine.test_kills import Adding
from tests.engine.training.toy_model import toy_manifest, toy_model
from tests.parity.fixtures import golden_folder


def copies(*sources: Path) -> Callable[[Path], None]:
    def write(root: Path) -> None:
        for source in sources:
            shutil.copytree(source, root / source.name) if source.is_dir() else shutil.copy(source, root)

    return write


WRITTEN_PROFILES = [WRITTEN / f"{name}.json" for name in PROFILES]


def read_table(root: Path, path: Path) -> object:
    return StrategyTable.from_json(read_artefact(str(path), table_commands.TITLE), str(path))


def write_weights(root: Path) -> None:
    torch.save({"a": torch.ones(3, 4), "b": torch.arange(5)}, root / "a.pt")
    torch.save({"a": torch.ones(3, 4)}, root / "b.bin", _use_new_zipfile_serialization=False)
    shutil.copy(resource("models", "natural-decoder", "model.safetensors"), root / "c.safetensors")


def write_packed(root: Path) -> None:
    small_language.write_model(root / "whole" / "lm")
    small_language.write_draft(root / "whole" / "lm", lambda weight: weight * 1.1)
    small_language.write_student(root / "whole" / "lm")
    with pytest.MonkeyPatch.context() as patch:
        small_packed.pack_small(patch)
        packing.pack_models(root / "whole", root / "packed")
    shutil.rmtree(root / "whole")


def read_packed(root: Path, path: Path) -> object:
    """A damaged base is said of what was trained from it."""
    return [read_weights(one) for one in sorted(root.rglob("*.safetensors"))]


def write_recordings(root: Path) -> None:
    times = np.arange(12_000) / 24_000
    for suffix in ("wav", "flac", "ogg"):
        soundfile.write(root / f"voice.{suffix}", 0.2 * np.sin(1000 * times), 24_000)
    np.save(root / "latents.npy", np.zeros((1, 24, 32), np.float32))


def read_sound(root: Path, path: Path) -> object:
    if path.suffix != ".npy":
        return read_recording(path)
    audio = root / "voice.wav"
    return read_latents(path, prepare_recording(read_recording(audio), 960), audio)


def write_lists(root: Path) -> None:
    soundfile.write(root / "a.wav", np.zeros(24_000), 24_000)
    (root / "prompts.lst").write_text("one|Hello there.|a.wav|Good bye.\n" * 3)
    (root / "1" / "2").mkdir(parents=True)
    shutil.copy(root / "a.wav", root / "1" / "2" / "1-2-3.flac")
    (root / "clips.tsv").write_text("1-2-3\t1.0\tHello there.\t1-2-3\t1.0\tGood bye.\n" * 3)


def write_trained(root: Path) -> None:
    small_language.write_model(root / "lm")
    small_language.write_draft(root / "lm")
    small_language.write_student(root / "lm")
    small_language.write_order(root / "lm")


def read_trained(root: Path, path: Path) -> object:
    folder = LmMiniFolder(root / "lm")
    found = find_language_weights([root / "lm"], "x")
    return found, folder.layout(), folder.network(torch.device("cpu")), folder.tokenizer(torch.device("cpu"))


def read_omni(root: Path, path: Path) -> object:
    folder = OmniMiniFolder(root / "omni")
    return folder.layout(), folder.network(), folder.codec()


def write_grid(root: Path) -> None:
    grid = PlacedGrid(Compatibility("f5-mini", "0" * 64, "tiny", Values({"steps": 2, "sway": -1.0})), (0.0, 0.25, 1.0))
    (root / "grid.json").write_text(json.dumps(grid.to_json()))


def write_groups(root: Path) -> None:
    groups = Groups("lm-mini", "0" * 64, 9, SPACES[0], 0.9, 2, 3, ((1, 2), (3, 4, 7)))
    (root / "groups.json").write_text(json.dumps(groups.to_json()))


def write_trials(root: Path) -> None:
    for number in (1, 2, 3):
        trials.append(abx_trial("s", number), root)


def loading(model: str, *place: str) -> Callable[[Path, Path], object]:
    return lambda root, path: load_model(model, folder=str(root.joinpath(*place)), device="cpu")


def read_qwen3(root: Path, path: Path) -> object:
    return loading("Qwen3-TTS-12Hz-1.7B-Base", "qwen3")(root, path), OfficialFolder.read(root / "qwen3").encoder()


KINDS = (
    Kind("f5 checkpoint", lambda root: void(toy_model(root / "f5")), "f5/*", lambda root, path: spoken_by_f5(root)),
    Kind("checkpoint files", write_weights, "*.*", lambda root, path: read_weights(path)),
    Kind("packed weights", write_packed, "packed/**/*.safetensors", read_packed),
    Kind("vocos", lambda root: void(small_vocos.write_vocos(root)), "*", lambda root, path: Vocos.load(root)),
    Kind("language model", write_trained, "lm/**/*.*", read_trained),
    Kind("masked model", lambda root: void(small_omni_mini.write_model(root / "omni")), "omni/**/*.*", read_omni),
    Kind(
        "llasa",
        lambda root: void(small_llasa.write_release(root, shards=2)),
        "*/**/*.*",
        loading("Llasa-1B", "Llasa-1B"),
    ),
    Kind(
        "omnivoice",
        lambda root: void(small_omnivoice.write_release(root / "omni")),
        "omni/**/*.*",
        loading("OmniVoice", "omni"),
    ),
    Kind(
        "qwen3-tts",
        lambda root: void(shutil.copytree(golden_folder() / "qwen3" / "qwen3_release_base", root / "qwen3")),
        "qwen3/**/*.*",
        read_qwen3,
    ),
    Kind(
        "megatts3", lambda root: small_megatts3.write_release(root / "mega"), "mega/**/*.*", loading("MegaTTS3", "mega")
    ),
    Kind(
        "descriptions",
        copies(resource("models", "f5-mini", "model.yaml")),
        "*.yaml",
        lambda root, path: ConfigFile.read(path),
    ),
    Kind("profiles", copies(*WRITTEN_PROFILES), "*.json", lambda root, path: Profile.load(path).encoded()),
    Kind("tables", copies(WRITTEN / "dit-table.json"), "*.json", read_table),
    Kind("grids", write_grid, "*.json", lambda root, path: artefact_in(path, searched_grid.TECHNIQUE)),
    Kind("groups", write_groups, "*.json", lambda root, path: artefact_in(path, token_groups.TECHNIQUE)),
    Kind("studies", copies(*resource("studies").glob("*.toml")), "*.toml", lambda root, path: definition.read(path)),
    Kind("study results", copies(WRITTEN / "small.study"), "small.study/**/*.*", lambda root, path: read_results(root)),
    Kind("takes", copies(WRITTEN / "takes"), "takes/**/*.*", lambda root, path: read_takes(root)),
    Kind("samples", copies(resource("samples")), "samples/**/*.toml", lambda root, path: samples.read(path)),
    Kind("recordings", write_recordings, "*.*", read_sound),
    Kind("training manifest", lambda root: void(toy_manifest(root, 3)), "**/*.*", lambda root, path: read_corpus(root)),
    Kind("evaluation lists", write_lists, "*.[lt]s*", lambda root, path: evaluation_sets.read_evaluation(path, root)),
    Kind("listening tests", write_trials, "*.*", lambda root, path: trials.read(root), forgiving=True),
)


def spoken_by_f5(root: Path) -> object:
    return read_f5_checkpoint(root / "f5").build()


def read_corpus(root: Path) -> object:
    return read_manifest(next(root.rglob("*.csv")))


def read_results(root: Path) -> object:
    return results.to_json(results.read(root / "small.study"))


def read_takes(root: Path) -> object:
    with Library(root / "takes") as library:
        return [library.load(one.id) for one in library.summaries()]


# --- What Paretone keeps for later: of trainings, measurements, prepared speech and exported folders ------------------
def write_training(root: Path) -> None:
    often = Intervals(log_steps=1, validation_steps=2)
    TrainingSession(Adding(), root / "work", Budget(steps=6), often, report=void).train(resume=False)


def resume(root: Path, path: Path) -> object:
    """To the end, as one that was killed."""
    TrainingSession(Adding(), root / "work", Budget(steps=8), report=void).train(resume=True)
    return read_log(root / "work" / LOG)


def write_spoken(root: Path) -> None:
    tokens = SpokenTokens("anna", np.arange(9, dtype=np.int16), np.arange(9, dtype=np.int16))
    write_tokens(root / "tokens.npz", [tokens, tokens])


def write_measured(root: Path) -> None:
    os.environ["PARETONE_DATA"] = str(root)
    weights_record.Record.of("lm-mini").with_measured(Measured("here", "0" * 64, "int8", 0, 1.4, 1.3, 1.5, 0.02, 0.003))
    ceilings.keep(known_ceilings())
    Journal("a search").add((0.0, 0.5, 1.0), (0.1, 0.2))


def read_measured(root: Path, path: Path) -> object:
    os.environ["PARETONE_DATA"] = str(root)
    found = weights_record.Record.of("lm-mini"), ceilings.kept(known_ceilings().key), Journal("a search").known
    # What is kept next takes the place of what cannot be read.
    write_measured(root)
    return found


def write_prepared(root: Path) -> None:
    toy_manifest(root, 3)
    read_prepared(root, root)


def read_prepared(root: Path, path: Path) -> object:
    """What does not say what it should is prepared again."""
    manifest = root / "speech" / "manifest.csv"
    found = prepare(manifest, read_manifest(manifest), PhoneReader(VOCABULARY), root / "work")
    assert all(len(one.ids) == one.frames for one in (*found.training, *found.held_out))
    return found


VOICES = sorted(resource(*PLACE).glob("*.json"))[:2]
RECORDS = (
    Kind("training states", write_training, "work/*.pt", resume),
    Kind("training logs", write_training, f"work/{LOG}", resume, forgiving=True),
    Kind("spoken tokens", write_spoken, "*.npz", lambda root, path: read_tokens(path)),
    Kind("prepared speech", write_prepared, "work/*", read_prepared, forgiving=True),
    Kind(
        "layer importance",
        lambda root: record(DIVERGENCES).write(root / IMPORTANCE),
        "*.json",
        lambda root, path: read_record([root], "abc"),
    ),
    Kind("measurements", write_measured, "**/*.json*", read_measured, forgiving=True),
    Kind(
        "exported folders",
        lambda root: void(export(profile(), "f5-tts", root / "exported", Observer())),
        "exported/*.json",
        lambda root, path: (paretone_profile.read(root / "exported"), Profile.load(root / "exported" / "profile.json")),
        errors=(PlainError, paretone_profile.ProfileMismatch),
    ),
    Kind("voices", copies(*VOICES), "*.json", lambda root, path: read_voice(root, path.stem)),
    Kind("cosyvoice 2", small_cosyvoice2.write_release, "**/*.*", loading("CosyVoice2-0.5B")),
)


@pytest.mark.parametrize("kind", [*KINDS, *RECORDS], ids=lambda kind: kind.name)
def test_a_damaged_file_is_a_sentence(kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check(kind, tmp_path, monkeypatch)
