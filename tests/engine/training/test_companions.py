"""Drafts and students of a small language model: what trains, what is written, and that the engine runs it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import torch

from paretone.errors import Cancelled, PlainError, SettingError, TrainingError
from paretone.models.catalogue import voice, voices
from paretone.models.files.checkpoints import fingerprint, metadata_of, read_weights
from paretone.models.files.layer_importance import COSINE, layer_of, read_record
from paretone.models.files.trained_weights import DRAFTS, STUDENTS
from paretone.paths import own_place
from paretone.setting.knobs import Values
from paretone.setting.setting import UsedTechnique
from paretone.speaking import scripted
from paretone.techniques import spade
from paretone.techniques.spade import StudentRequest
from paretone.techniques.spade.training import Student, StudentOptions, StudentRecipe
from paretone.techniques.speculative import DraftRequest
from paretone.techniques.speculative.training import Draft, DraftOptions, DraftRecipe, retained_layers
from paretone.techniques.trained import fitting, named
from paretone.training import companions
from paretone.training.companions import gathered, train_companion
from paretone.training.forms import training_form
from paretone.training.learner import Rates
from paretone.training.requests import CompanionRequest, Follower, Trained, TrainingProgress
from paretone.training.session import CHECKPOINT, Intervals
from paretone.training.spoken_tokens import SpokenTokens, write_tokens
from paretone.training.teachers import LmMiniTeacher, read_teacher
from paretone.training.token_recipe import TokenData
from tests.engine import small_language
from tests.engine.command_line import Console
from tests.engine.small_language import LAYERS, write_draft, write_model, write_order, write_student
from tests.engine.speaking import TEXT, drafted, load, setting
from tests.engine.training.learning import Recorder, same_weights

SENTENCES = 5
CPU = torch.device("cpu")


def utterances(count: int = 30) -> tuple[SpokenTokens, ...]:
    draw = np.random.default_rng(5)
    lengths = draw.integers(8, 20, count)
    # Codes follow from phones, so that there is something to learn.
    phones = [draw.integers(0, len(small_language.PHONES), length).astype(np.int16) for length in lengths]
    pairs = zip(["anna" if number % 2 else "bella" for number in range(count)], phones, strict=True)
    return tuple(SpokenTokens(who, one, (one % small_language.CODES).astype(np.int16)) for who, one in pairs)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_model(tmp_path / "model")


@pytest.fixture
def teacher(root: Path) -> LmMiniTeacher:
    return read_teacher("lm-mini", str(root), Follower())


@pytest.fixture
def data() -> TokenData:
    return TokenData(utterances()[4:], utterances()[:4], "a test")


@pytest.fixture(autouse=True)
def _apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, one_thread: None) -> None:
    monkeypatch.setenv("PARETONE_DATA", str(tmp_path / "own"))


def draft_recipe(teacher: LmMiniTeacher, data: TokenData, initial: dict | None = None) -> DraftRecipe:
    chosen = DraftOptions(positions=300, warm_up=1, average_decay=0.5, lower=1, upper=1)
    return DraftRecipe(teacher, data, CPU, chosen, initial)


def student_recipe(teacher: LmMiniTeacher, data: TokenData, **options: object) -> StudentRecipe:
    chosen = StudentOptions(positions=300, warm_up=1, average_decay=0.5, retained=(0, 2), **options)
    return StudentRecipe(teacher, data, CPU, chosen)


def train(recipe: DraftRecipe | StudentRecipe, steps: int, first: int = 1) -> list[float]:
    return [recipe.step(number, number / 100)["loss"] for number in range(first, first + steps)]


def test_a_draft_learns_in_its_lowest_layers_and_its_head_only(teacher: LmMiniTeacher, data: TokenData) -> None:
    assert retained_layers(24, 2, 6) == (0, 1, 18, 19, 20, 21, 22, 23)
    assert retained_layers(3, 2, 6) == (0, 1, 2) and retained_layers(12, 2, 0) == (0, 1)
    recipe = draft_recipe(teacher, data)
    before = {name: value.clone() for name, value in recipe.model.state_dict().items()}
    validated = recipe.validate()
    train(recipe, 25)
    changed = {name for name, value in recipe.model.state_dict().items() if not torch.equal(value, before[name])}
    assert {name.split(".")[2] for name in changed if "layers" in name} == {"0"}
    assert {name for name in changed if "layers" not in name} == {"head.weight"}
    assert recipe.validate()["acceptance"] > validated["acceptance"] and 0 < validated["acceptance"] < 1


def test_a_drafts_file_has_trained_layers_by_their_number(teacher: LmMiniTeacher, data: TokenData, root: Path) -> None:
    recipe = draft_recipe(teacher, data)
    train(recipe, 2)
    path = root / DRAFTS / recipe.file_name
    recipe.save(path, recipe.metadata_after(90))
    assert {layer_of(name) for name in read_weights(path)} == {0, None}
    said = metadata_of(path)
    assert (said["kind"], said["retained"], said["trained"], said["minutes"]) == ("draft", "[0,2]", "[0]", "1.5")
    assert said["base"] == fingerprint(root / "model.safetensors")
    model = load(root)
    (draft,) = model.info.drafts
    assert (draft.retained, draft.trained, draft.head) == ((0, 2), (0,), True)
    speech = list(model.decodings(scripted(model, TEXT, voice("", "lm-mini"), setting(drafted()))))
    assert sum(len(cycle.tokens) for _, decoding in speech for cycle in decoding) > 10


def test_a_student_is_its_teacher_without_layers_and_comes_nearer(teacher: LmMiniTeacher, data: TokenData) -> None:
    # What was spoken has nothing to do with a teacher that is noise: learn from the teacher alone.
    recipe = student_recipe(teacher, data, alpha=0.0, matrix_rate=1e-3, other_rate=1e-3)
    batch = teacher.collate([[one] for one in data.held_out])
    assert torch.allclose(recipe.model(batch).logits, teacher.network(batch, skip=(1,)).logits, atol=1e-4)
    before = recipe.validate()["divergence"]
    losses = train(recipe, 40)
    assert recipe.validate()["divergence"] < before
    assert np.mean(losses[-5:]) < np.mean(losses[:5])
    assert all(parameter.grad is not None for parameter in recipe.model.parameters())
    assert all(parameter.grad is None for parameter in recipe.teacher.parameters())


def test_a_student_of_original_layers_learns_and_says_so(teacher: LmMiniTeacher, data: TokenData, root: Path) -> None:
    recipe = student_recipe(teacher, data, original_layers=True, attention_interval=1, relative_latents=False)
    batch = teacher.collate([[one] for one in data.held_out])
    wanted, found = teacher.network(batch, outputs=(0, 2)), recipe.model(batch, outputs=(0, 1))
    errors = [(found.outputs[at] - wanted.outputs[of])[batch.heard].square().mean() for at, of in ((0, 0), (1, 2))]
    _, terms = recipe.losses(batch)
    assert terms["latent"] == pytest.approx(float(torch.stack(errors).mean().detach()), rel=1e-5)
    recipe.save(root / STUDENTS / recipe.file_name, recipe.metadata_after(60))
    write_student(root, (0, 1))
    info = load(root).info
    assert recipe.file_name == "student-2-original-layers.safetensors"
    for targets, retained in (("following", (0, 1)), ("original", (0, 2))):
        (one,) = spade.fitting_students(info, Values(depth=2, recovery="recovered", layers="", targets=targets))
        assert (one.retained, one.targets) == (retained, targets)
    with pytest.raises(TrainingError, match="targets = 'original', not 'following'"):
        student_recipe(teacher, data, attention_interval=1, relative_latents=False).restore(recipe.state())
    earlier = {name: value for name, value in recipe.state().items() if name != "choices"}
    with pytest.raises(TrainingError, match="attention interval = '8', not '1'"):
        recipe.restore(earlier)


def test_importance_is_measured_before_it_prunes(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (anna, *_) = voices("lm-mini")
    monkeypatch.setattr("paretone.techniques.spade.training.voices", lambda model, folder: (anna,))
    options = StudentOptions(positions=300, importance="cosine")
    student = Student(options, depth=2, measured_sentences=1)
    trained = job(root, tmp_path / "work", student, export=str(root), steps=1).run()
    record = read_record([tmp_path / "own" / "models" / "lm-mini"], fingerprint(root / "model.safetensors"))
    values = record.measure(COSINE).values
    largest = sorted(sorted(range(LAYERS), key=lambda layer: -values[layer])[:2])
    assert trained.figures["retained"] == ",".join(map(str, largest))
    with pytest.raises(SettingError, match="omit one of the two"):
        job(root, tmp_path / "listed", Student(replace(options, retained=(0, 2)))).run()


def test_the_command_passes_every_choice_on(root: Path, tmp_path: Path, console: Console) -> None:
    write_order(root)
    work = job(root, tmp_path / "work", Student(StudentOptions())).request.work
    place = ["--folder", str(root), "--work", work, "--export", str(root), "--device", "cpu", "--threads", "1"]
    chosen = "--depth 2 --importance word_error --alpha 0.5 --skew 0 --attention-interval 1 --attention-scale 8"
    more = f"--original-layers --published-latents --positions 300 --sentences {SENTENCES} --steps 1 --json"
    data = console.data("train", "spade", *place, *chosen.split(), *more.split())
    assert (data["retained"], data["targets"]) == ("0,2", "original"), "layers with the largest word errors"
    said = metadata_of(Path(data["checkpoint"]))
    wanted = {"importance": "word_error", "alpha": "0.5", "skew": "0", "attention_interval": "1"}
    wanted |= {"attention_scale": "8", "targets": "original", "latents": "published"}
    assert {name: said[name] for name in wanted} == wanted


@pytest.mark.parametrize("make", [draft_recipe, student_recipe])
def test_going_on_from_a_checkpoint_gives_the_same_bits(
    teacher: LmMiniTeacher, data: TokenData, make: Callable[..., DraftRecipe | StudentRecipe]
) -> None:
    through, first, second = (make(teacher, data) for _ in range(3))
    train(through, 4)
    train(first, 2)
    second.restore(first.state())
    train(second, 2, first=3)
    assert same_weights(second.model, through.model)


def test_a_checkpoint_of_other_layers_or_another_teacher_is_refused(teacher: LmMiniTeacher, data: TokenData) -> None:
    state = student_recipe(teacher, data).state()
    recipe = StudentRecipe(teacher, data, CPU, StudentOptions(positions=300, retained=(0, 1)))
    with pytest.raises(TrainingError, match="keeps other layers"):
        recipe.restore(state)
    teacher.base = "other"
    with pytest.raises(TrainingError, match="another checkpoint"):
        student_recipe(teacher, data).restore(state)


@dataclass(frozen=True)
class Task:
    """A request for a training, and the kind of companion."""

    request: CompanionRequest
    companion: Draft | Student

    def run(self, follower: Follower | None = None) -> Trained:
        return train_companion(self.request, self.companion, follower or Follower(), QUICK)


def job(root: Path, work: Path, companion: Draft | Student, steps: int = 3, **more: object) -> Task:
    base = fingerprint(root / "model.safetensors")
    write_tokens(work / f"{base[:8]}-{SENTENCES}-own-speech.npz", utterances())
    common = {"model": "lm-mini", "sentences": SENTENCES, "folder": str(root), "device": "cpu", "steps": steps}
    return Task(CompanionRequest(work=str(work), **common | more), companion)


QUICK = Intervals(validation_steps=2, validates_first=True)


def test_a_draft_is_trained_and_found_by_the_engine(root: Path, tmp_path: Path) -> None:
    follower = Recorder()
    draft = Draft(DraftOptions(positions=300, lower=1, upper=1))
    trained = job(root, tmp_path / "work", draft, export=str(root)).run(follower)
    assert trained.checkpoint == str(root / DRAFTS / "draft-2.safetensors")
    assert trained.figures["retained"] == "0,2" and "2 layers (0, 2)" in trained.summary
    assert [one.step for one in follower.seen if one.losses] == [1, 2, 3]
    assert [one.step for one in follower.seen if one.validation] == [0, 2, 3]
    assert load(root).info.drafts[0].path == trained.checkpoint


def test_what_a_user_trains_neither_shadows_nor_replaces_what_was_shipped(root: Path, tmp_path: Path) -> None:
    shipped, longer = write_draft(root), write_student(root, minutes=1000.0)
    (own_place("lm-mini") / STUDENTS).mkdir(parents=True)
    longer.rename(own_place("lm-mini") / STUDENTS / longer.name)
    student = write_student(root)
    made = Path(job(root, tmp_path / "work", Draft(DraftOptions(positions=300, lower=1, upper=1))).run().checkpoint)
    assert made == own_place("lm-mini") / DRAFTS / "own-draft-2.safetensors"
    made = made.rename(made.with_name(shipped.name))  # As an earlier version called it.
    info = load(root).info
    found = [fitting(info, "speculative", Values(draft=draft)) for draft in ("layers", "student")]
    found.append(fitting(info, "spade", Values(depth=2, recovery="recovered", layers="", targets="following")))
    assert [Path(one[0].path) for one in found] == [shipped, student, student] and len(found[0]) == len(found[2]) == 2
    for typed, meant in (("draft-2", shipped), (fingerprint(made)[:12], made), (str(made), made)):
        assert named(info, UsedTechnique("speculative", Values(), typed)).artefact == fingerprint(meant)


def test_with_an_evaluation_set_no_own_speech_is_held_out(root: Path, teacher: LmMiniTeacher, tmp_path: Path) -> None:
    request = job(root, tmp_path / "work", Draft(DraftOptions())).request
    assert [len(part) for part in (gathered(request, teacher, Follower()).training, utterances())] == [28, 30]
    with pytest.raises(TrainingError, match="30 utterances to train on and 0 to validate on"):
        gathered(replace(request, validation="without recordings.csv"), teacher, Follower())


def test_a_draft_starts_from_an_earlier_one(tmp_path: Path, data: TokenData, teacher: LmMiniTeacher) -> None:
    earlier = draft_recipe(teacher, data)
    train(earlier, 3)
    earlier.save(tmp_path / "earlier.safetensors", earlier.metadata_after(0))
    recipe = draft_recipe(teacher, data, initial=read_weights(tmp_path / "earlier.safetensors"))
    for name, value in earlier.average.module.state_dict().items():
        assert torch.allclose(recipe.model.state_dict()[name], value, atol=2e-3), name


def test_without_numbers_companions_fit_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the window proposes: a student of half of the layers, a draft with a quarter of them on top."""
    monkeypatch.setitem(small_language.CONFIG, "num_hidden_layers", 24)
    root = write_model(tmp_path / "deep")
    write_order(root, tuple(map(float, range(24))))
    given = {"model": "lm-mini", "work": ""}
    drafted = job(root, tmp_path / "draft", Draft.of(DraftRequest(**given)), export=str(root), steps=1).run()
    assert drafted.figures["retained"] == "0,1,18,19,20,21,22,23"
    student = Student.of(StudentRequest(**given))
    assert job(root, tmp_path / "student", student, export=str(root), steps=1).run().figures["depth"] == 12
    info = replace(load(root).info, layers=24)
    assert (training_form("speculative").fitting(info), training_form("spade").fitting(info)) == (
        {"upper": 6},
        {"depth": 12},
    )


def test_rates_that_are_not_given_follow_from_the_size_of_the_model(
    root: Path, tmp_path: Path, teacher: LmMiniTeacher, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = job(root, tmp_path / "work", Draft(DraftOptions()))
    asked = job(root, tmp_path / "work", Draft(DraftOptions()), rate=3e-4, matrix_rate=0.02)
    assert companions.rates_of(usual.request, usual.companion, teacher) == Rates(0.01, 1e-3)
    monkeypatch.setattr(companions, "SMALL_PARAMETERS", 1)
    assert companions.rates_of(usual.request, usual.companion, teacher) == Rates(None, 1e-4)
    assert companions.rates_of(asked.request, asked.companion, teacher) == Rates(0.02, 3e-4)


def test_an_interrupted_training_leaves_a_checkpoint_and_goes_on(root: Path, tmp_path: Path) -> None:
    student = Student(StudentOptions(positions=300, retained=(0, 2)))
    task = job(root, tmp_path / "work", student, export=str(tmp_path / "out"), steps=4)

    def stop(milestone: TrainingProgress) -> None:
        if milestone.step == 2:
            raise Cancelled

    with pytest.raises(Cancelled, match="to resume from"):
        task.run(Recorder(stop))
    assert torch.load(tmp_path / "work" / CHECKPOINT, weights_only=True)["step"] == 2
    assert not (tmp_path / "out").exists()
    trained = replace(task, request=replace(task.request, resume=True)).run()
    assert trained.steps == 4 and Path(trained.checkpoint).is_file()


def test_stages_are_kept_next_to_the_result(root: Path, tmp_path: Path) -> None:
    student = Student(StudentOptions(positions=300, retained=(0, 2)), stages=(1e-6,))
    task = job(root, tmp_path / "work", student, export=str(root))
    task.run()
    partly, recovered = sorted(load(root).info.students, key=lambda one: one.recovered)
    assert partly.stage == "minutes:1e-06" and not partly.recovered
    assert recovered.stage == "recovered"
    # As after a kill once everything was written: nothing is written twice. A longer run has another result.
    again = replace(task, request=replace(task.request, resume=True)).run()
    assert again.checkpoint == recovered.path
    longer = replace(task, request=replace(task.request, resume=True, steps=again.steps + 2)).run()
    assert longer.checkpoint != recovered.path
    assert len(list(Path(partly.path).parent.glob("*-minutes*.safetensors"))) == 1
    assert len(list(Path(partly.path).parent.glob("*.safetensors"))) == 3


class Hurried(Follower):
    """Fails where anything is spoken to learn from."""

    def progress(self, done: int, total: int) -> None:
        raise AssertionError("It has begun to speak.")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda root: Student(StudentOptions(), depth=9), f"LM mini has {LAYERS} layers; keep between 1 and {LAYERS}"),
        (lambda root: Student(StudentOptions(retained=(0, 7))), "some of 0 to 2"),
        (lambda root: Draft(DraftOptions(), root / "nowhere.safetensors"), r"nowhere\.safetensors is missing"),
        (lambda root: Draft(DraftOptions(), root / "students" / "student-2-recovered.safetensors"), "is not a draft"),
        (
            lambda root: Draft(DraftOptions(), root / "drafts" / "draft-2.safetensors"),
            "was made from another checkpoint",
        ),
        (
            lambda root: Draft(DraftOptions(), root / "drafts" / "own.safetensors"),
            "learnt in 1 of the model's layers, not in the 2 lowest",
        ),
        (lambda root: Draft(DraftOptions(lower=1), root / "drafts" / "own.safetensors"), "It has begun to speak"),
    ],
)
def test_what_cannot_be_is_said_before_anything_is_spoken(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], Draft | Student], words: str
) -> None:
    monkeypatch.setattr(LmMiniTeacher, "portion", 1)
    write_student(root)
    write_draft(root).rename(root / "drafts" / "own.safetensors")
    write_draft(root, base="f" * 64)
    common = {"sentences": 400, "folder": str(root), "device": "cpu", "steps": 1}
    request = CompanionRequest(model="lm-mini", work=str(tmp_path / "work"), **common)
    with pytest.raises((PlainError, AssertionError), match=words):
        train_companion(request, make(root), Hurried(), QUICK)


def test_what_was_spoken_is_not_spoken_again(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stopping(Recorder):
        last = 6

        def progress(self, done: int, total: int) -> None:
            super().progress(done, total)
            if done >= self.last:
                raise Cancelled

    asked: list[tuple[str, ...]] = []
    speak = LmMiniTeacher.speak

    def counted(one: LmMiniTeacher, sentences: Sequence[str], *more: object) -> tuple[SpokenTokens, ...]:
        spoken = speak(one, sentences, *more)
        asked.append(tuple(sentences))
        # The small model never ends by itself.
        return spoken + utterances(len(sentences))

    monkeypatch.setattr(LmMiniTeacher, "speak", counted)
    monkeypatch.setattr(LmMiniTeacher, "portion", 4)
    monkeypatch.setattr(companions, "voices", lambda *given: voices(*given)[:2])
    common = {"sentences": 6, "folder": str(root), "device": "cpu", "steps": 1}
    request = CompanionRequest(model="lm-mini", work=str(tmp_path / "work"), **common)
    task = Task(request, Draft(DraftOptions(lower=1)))
    with pytest.raises(Cancelled):
        task.run(Stopping())
    assert len(asked) == 1
    through = Recorder()
    task.run(through)
    assert [len(one) for one in asked] == [4, 4, 4] and len({*sum(asked, ())}) == 12
    assert through.told[0] == (4, 12) and through.told[-1] == (12, 12)
    kept = sorted(path.name for path in Path(request.work).iterdir() if "own-speech" in path.name)
    assert kept == [f"{fingerprint(root / 'model.safetensors')[:8]}-6-own-speech.npz"], "one file in the end"
