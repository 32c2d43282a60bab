"""No modules of the application or of the engine import each other in a circle, for annotations included."""

from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter

import grimp
import pytest


def circle(imports: Mapping[str, set[str]]) -> list[str]:
    """Modules of a circle in the order in which they import each other, the first once more at its end; none where
    there is none."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return error.args[1][::-1]
    return []


@pytest.fixture(scope="module")
def imports() -> dict[str, set[str]]:
    graph = grimp.build_graph("paretone", "paretone_app", exclude_type_checking_imports=False, cache_dir=None)
    return {module: set(graph.find_modules_directly_imported_by(module)) for module in graph.modules}


def test_modules_do_not_import_each_other_in_a_circle(imports: dict[str, set[str]]) -> None:
    assert len(imports) > 500
    assert not (found := circle(imports)), " -> ".join(found)
