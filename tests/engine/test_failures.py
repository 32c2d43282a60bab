"""Sentences for what can go wrong, and figures and lists as people read them."""

import csv
import errno
import io
import re
from pathlib import Path

import pytest
import torch

from paretone.errors import AudioError, details, is_device_lost, is_out_of_memory, sentence
from paretone.wording import comma_separated, comments, listed, significant


def caught(action: object) -> BaseException:
    try:
        action()
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


def test_memory_of_the_cpu() -> None:
    error = caught(lambda: torch.empty(10**14))
    assert isinstance(error, RuntimeError) and is_out_of_memory(error)
    assert sentence(error, "synthesising").startswith("This machine ran out of memory while synthesising")


def test_memory_of_a_graphics_card() -> None:
    error = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB.")
    assert is_out_of_memory(error) and is_out_of_memory(MemoryError())
    assert is_out_of_memory(OSError(errno.ENOMEM, "Cannot allocate memory"))
    text = sentence(error, "loading the model", "cuda:0")
    assert text.startswith("The graphics card ran out of memory while loading the model; unload the current model")
    assert text.endswith("or load the model on the CPU.")


def test_a_graphics_card_that_failed() -> None:
    error = RuntimeError("CUDA error: unspecified launch failure\nCompile with `TORCH_USE_CUDA_DSA`.")
    assert is_device_lost(error) and not is_out_of_memory(error)
    other = caught(lambda: torch.ones(2, 3) @ torch.ones(2, 3))
    assert not is_out_of_memory(other) and not is_device_lost(other)
    assert sentence(error, "synthesising", "cuda:0").startswith("The graphics card failed while synthesising")
    assert not is_device_lost(torch.OutOfMemoryError("CUDA error: out of memory"))


def test_missing_file(tmp_path: Path) -> None:
    text = sentence(caught((path := tmp_path / "voice.wav").read_bytes), "synthesising")
    assert text == f"The file {path} is missing, which is needed for synthesising; put it back or choose another."


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux's always full device")
def test_full_disk() -> None:
    def write() -> None:
        with open("/dev/full", "wb", buffering=0) as file:
            file.write(b"speech")

    assert sentence(caught(write), "downloading the model") == "The disk is full; free some space and try again."


def test_unforeseen_error() -> None:
    error = caught(lambda: {}["key"])
    text = "Something unexpected went wrong while calibrating: KeyError: 'key'."
    assert sentence(error, "calibrating") == text
    assert sentence(error, "calibrating", afterwards="The engine goes on.") == f"{text} The engine goes on."
    assert "Traceback" in details(error)
    foreseen = AudioError("The recording is empty.")
    assert (sentence(foreseen, "synthesising"), details(foreseen)) == ("The recording is empty.", "")
    assert details(PermissionError(errno.EACCES, "denied", "voice.wav")) == ""


# --- Figures and lists ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("names", "said"), [("", "none"), ("a", "a"), ("ab", "a or b"), ("abc", "a, b or c")])
def test_the_last_of_a_list_stands_after_a_word(names: str, said: str) -> None:
    assert listed(names, "or") == said
    assert listed(iter(names)) == said.replace(" or ", " and ")


def test_measured_figures_have_three_significant_digits() -> None:
    figures = 0.0, 0.05, 0.8119, 1.0, -2.9419, 23.45, 999.4, 999.6, 12345.6
    assert [*map(significant, figures)] == "0 0.0500 0.812 1.00 -2.94 23.4 999 1,000 12,346".split()


ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("begins", ["=", "+", "-", "@", "\t", "\r", "\n"])
def test_texts_that_a_spreadsheet_would_compute_get_an_apostrophe(begins: str) -> None:
    text = f'{begins}HYPERLINK("http://example.org","title")'
    assert next(csv.reader(io.StringIO(comma_separated([[text, "a"]]), newline=""))) == [f"'{text}", "a"]


@pytest.mark.parametrize("value", [-0.5, "-0.5", "+3", "-1e-05", "-.5", "-12 %", "-3.5%", 0, None, "", "a=b", "1-2"])
def test_numbers_and_other_texts_stay(value: object) -> None:
    (found,) = next(csv.reader(io.StringIO(comma_separated([[value]]))), [""])
    assert found == ("" if value is None else str(value))


def test_lines_before_a_table_are_cut_into_no_formula() -> None:
    lines = comments({"text": "Rice,=cmd();+1\t@x", "voice": "a\nb"})
    assert lines == "# text: Rice, =cmd(); +1 @x\n# voice: a b\n"
    for delimiter in ",;\t":
        cells = [cell for line in lines.splitlines() for cell in line.split(delimiter)]
        assert not any(cell.startswith(("=", "+", "-", "@")) for cell in cells)


def test_nobody_else_writes_such_tables() -> None:
    """So that none forgets."""
    files = [path for folder in ("app", "engine") for path in (ROOT / folder).rglob("*.py")]
    assert len(files) > 500
    found = [path for path in files if re.search(r"csv\.(writer|DictWriter)\(", path.read_text(encoding="utf-8"))]
    assert found == [ROOT / "engine" / "paretone" / "wording.py"]
