"""The order of a study's tasks: who does what, what waits for what, what happens to the tasks of workers that die."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

from paretone.studies.running import ATTEMPTS, Queue
from paretone.studies.study import MeasureReference, Prepare, Speak, Study, Task
from tests.engine.studies.small import study


def queue(chosen: Study, **known: object) -> Queue:
    return Queue(chosen, chosen.candidates, known.pop("finished", set()), known.pop("tables", {}), **known)


def all_tasks(one: Queue, worker: object = "a") -> list[Task]:
    found = []
    while (task := one.next(worker)) is not None:
        found.append(task)
        one.done(worker, 1.0, SimpleNamespace(fingerprint="table") if isinstance(task, Prepare) else None)
    return found


def test_two_workers_keep_to_their_own_sentences() -> None:
    chosen = study()
    one = queue(chosen)
    done: dict[str, list[Speak]] = {"a": [], "b": []}
    for _ in range(3):
        for worker in done:
            done[worker].append(one.next(worker))
            one.done(worker, 1.0)
    assert [len({task.cell.utterance for task in tasks}) for tasks in done.values()] == [1, 1]
    # The third sentence is for both of them: nobody is idle while one is left.
    third = [one.next("a"), one.next("b")]
    assert third[0].cell.setting == chosen.candidates[0].key
    assert third[1] is None, "not before the baseline is there"
    one.done("a", 1.0)
    assert (one.next("a"), one.next("b")) != (None, None)
    assert one.progress == (7, 9)
    assert one.seconds_left(2) == 1.0


def test_references_and_tables_come_first_and_takes_wait_for_their_table() -> None:
    chosen = study(grid={"ditreducio.threshold": [0.5], "steps.steps": ["off", 2]}, judges=["words"])
    one = queue(chosen)
    kinds = [type(task) for task in all_tasks(one)]
    assert kinds == [MeasureReference] * 3 + [Prepare] * 2 + [Speak] * 9
    waiting = queue(study(grid={"ditreducio.threshold": [0.5]}))
    prepare, baseline = waiting.next("a"), waiting.next("b")
    assert isinstance(prepare, Prepare) and baseline.cell.setting != prepare.key
    waiting.done("b", 1.0)
    others = [waiting.next("b")]
    waiting.done("b", 1.0)
    others.append(waiting.next("b"))
    waiting.done("b", 1.0)
    assert all(task.cell.setting != prepare.key for task in others)
    assert waiting.next("b") is None and waiting.left
    assert waiting.seconds_left() is None, "nobody knows how long a calibration takes"


def test_the_order_changes_from_sentence_to_sentence() -> None:
    chosen = study(grid={"steps.steps": ["off", 2, 3, 5, 6]}, rounds=2)
    orders: dict[tuple, list[str]] = {}
    for task in all_tasks(queue(chosen)):
        orders.setdefault((task.cell.round, task.cell.utterance), []).append(task.cell.setting)
    assert len(orders) == 6
    assert all(Counter(order) == Counter(one.key for one in chosen.candidates) for order in orders.values())
    assert len({tuple(order) for order in orders.values()}) == 6
    baseline = chosen.candidates[0].key
    assert all(order[0] == baseline for (turn, _), order in orders.items() if turn == 0)
    assert not all(order[0] == baseline for (turn, _), order in orders.items() if turn == 1)


def test_a_dead_workers_task_goes_to_another_until_too_many_have_died_with_it() -> None:
    one = queue(study())
    task = one.next("a")
    assert one.lost("a") is None
    assert one.next("b") == task
    for number in range(1, ATTEMPTS):
        given_up = one.lost("b")
        assert (given_up is not None) == (number == ATTEMPTS - 1)
        if given_up is None:
            assert one.next("b") == task
    assert given_up == task
    assert len(all_tasks(one)) == 8
    assert one.progress == (9, 9)
    assert one.lost("nobody") is None


def test_a_setting_that_cannot_be_run_is_taken_out() -> None:
    chosen = study()
    one = queue(chosen)
    first = one.next("a")
    one.give_up("a")
    one.drop(first.cell.setting)
    assert one.progress == (1, 7)
    assert {task.cell.setting for task in all_tasks(one)} == {other.key for other in chosen.candidates[1:]}
    assert not one.left


def test_the_estimate_counts_what_is_left_however_it_came_and_went() -> None:
    chosen = study()
    one = queue(chosen)
    first = one.next("a")
    assert one.seconds_left() is None
    one.done("a", 2.0)
    assert one.seconds_left() == 2.0 * 8
    one.next("a")
    assert one.seconds_left() == 2.0 * 8, "what is under way is left"
    one.lost("a")
    assert one.seconds_left() == 2.0 * 8
    one.drop(next(each.key for each in chosen.candidates if each.key != first.cell.setting))
    assert one.seconds_left() == 2.0 * 5
