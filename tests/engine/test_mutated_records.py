"""As ``test_mutated_files.py``, of what Paretone itself keeps for later: states and logs of trainings, measurements,
prepared speech and exported folders."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from paretone.errors import PlainError
from paretone.export.copied import paretone_profile
from paretone.export.targets import export
from paretone.measure.roofline import ceilings
from paretone.models import load_model
from paretone.models.files.layer_importance import FILE as IMPORTANCE
from paretone.models.files.layer_importance import read_record
from paretone.models.voices import PLACE, read_voice
from paretone.observer import Observer
from paretone.paths import resource
from paretone.setting.profile import Profile
from paretone.techniques import weight_only as weights_record
from paretone.techniques.searched_grid.searching import Journal
from paretone.techniques.weight_only import Measured
from paretone.training.features import PhoneReader, prepare
from paretone.training.manifest import read_manifest
from paretone.training.session import LOG, Budget, Intervals, TrainingSession, read_log
from paretone.training.spoken_tokens import VOCABULARY, SpokenTokens, read_tokens, write_tokens
from tests.engine.export.test_f5_tts import profile
from tests.engine.measure.roofline.known import ceilings as known_ceilings
from tests.engine.models.cosyvoice2 import small_release as small_cosyvoice2
from tests.engine.models.files.test_layer_importance import DIVERGENCES, record
from tests.engine.mutating import Kind, check, void
from tests.engine.test_kills import Adding
from tests.engine.training.toy_model import toy_manifest


def write_training(root: Path) -> None:
    session = TrainingSession(
        Adding(), root / "work", Budget(steps=6), Intervals(log_steps=1, validation_steps=2), report=void
    )
    session.train(resume=False)


def resume(root: Path, path: Path) -> object:
    """To the end, as one that was killed."""
    session = TrainingSession(Adding(), root / "work", Budget(steps=8), report=void)
    session.train(resume=True)
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


def write_exported(root: Path) -> None:
    export(profile(), "f5-tts", root / "exported", Observer())


def write_voices(root: Path) -> None:
    for path in sorted(resource(*PLACE).glob("*.json"))[:2]:
        shutil.copy(path, root)


KINDS = (
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
        write_exported,
        "exported/*.json",
        lambda root, path: (paretone_profile.read(root / "exported"), Profile.load(root / "exported" / "profile.json")),
        errors=(PlainError, paretone_profile.ProfileMismatch),
    ),
    Kind("voices", write_voices, "*.json", lambda root, path: read_voice(root, path.stem)),
    Kind(
        "cosyvoice 2",
        small_cosyvoice2.write_release,
        "**/*.*",
        lambda root, path: load_model("CosyVoice2-0.5B", folder=str(root), device="cpu"),
    ),
)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_damaged_record_is_a_sentence(kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check(kind, tmp_path, monkeypatch)
