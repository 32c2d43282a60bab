"""Ten thousand simulated listeners: who guesses passes in at most 5 % of the tests, who hears as often as computed."""

import subprocess
import sys

import pytest

from paretone.listening import statistics
from paretone.paths import resource
from tests.tools import simulated_listeners
from tests.workload import only_in_full


@only_in_full("repetitions")
def test_who_guesses_passes_rarely_and_who_hears_as_often_as_computed() -> None:
    found = simulated_listeners.simulate(16)
    guessing, often, nearly_always = found.passed
    assert guessing <= statistics.LEVEL
    for computed, passed in zip(found.computed, found.passed, strict=True):
        # Four standard errors of 10,000 listeners.
        assert passed == pytest.approx(
            computed, abs=4 * (computed * (1 - computed) / simulated_listeners.LISTENERS) ** 0.5
        )
    assert guessing < often < nearly_always
    documented = resource("docs", "listening-tests.md").read_text(encoding="utf-8")
    assert simulated_listeners.table([found]).splitlines()[-1] in documented, (
        "run: python -m tests.tools.simulated_listeners"
    )


def test_every_row_of_the_documented_table_is_computed() -> None:
    documented = resource("docs", "listening-tests.md").read_text(encoding="utf-8").splitlines()
    for trials in simulated_listeners.TRIALS:
        (row,) = [line for line in documented if line.startswith(f"| {trials} | {statistics.needed(trials)} (")]
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        assert (float(cells[4]), float(cells[6])) == tuple(
            round(statistics.power(trials, rate), 3) for rate in simulated_listeners.RATES[1:]
        )
        assert float(cells[3].rstrip("% ")) <= 100 * statistics.LEVEL


def test_the_command_prints_a_table() -> None:
    command = [sys.executable, "-m", "tests.tools.simulated_listeners", "--listeners", "2"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(printed) == 2 + len(simulated_listeners.TRIALS)
    assert printed[0].startswith("| n | needed")
