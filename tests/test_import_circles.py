"""No modules import each other in a circle, for annotations included, and no test uses somebody's private name."""

import ast
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp
import pytest


def circle(imports: Mapping[str, set[str]]) -> list[str]:
    """Modules of a circle, in the order of their imports, the first once more at the end; none without one."""
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


TESTS = Path(__file__).parent
ALLOWED = {
    *("_asdict", "_exit", "_fields", "_getframe", "_replace", "_repr_html_"),  # Documented, of Python and notebooks.
    *("_SubParsersAction", "_actions", "_private", "_split_scope"),  # Of argparse, Ray and pytest-xdist.
    *("_dynamo", "_inductor", "_local_scalar_dense", "_python_dispatch"),  # Of torch.
    # Of official packages that a peer runs.
    *("_attn_implementation", "_generate_iterative", "_is_hf_initialized", "_prepare_inference_inputs"),
}


def private_names(source: str) -> Iterator[tuple[int, str]]:
    """Line and name of each private name of others that ``source`` reads, imports, or patches by a string."""
    for node in ast.walk(ast.parse(source)):
        names: list[str] = []
        if isinstance(node, ast.Attribute):
            names = [] if ast.unparse(node.value) in ("self", "cls") else [node.attr]
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names = [part for one in node.names for part in f"{getattr(node, 'module', '')}.{one.name}".split(".")]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("attr", "attrgetter", "patch", "object")):
            texts = [one.value for one in node.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
            names = [part for text in texts for part in text.split(".")]
        yield from ((node.lineno, one) for one in names if one[:1] == "_" != one[1:2] and one not in ALLOWED)


def test_tests_use_public_names_only() -> None:
    caught = "import a._b; from c import _d; e._f; setattr(g, '_h', 1); monkeypatch.setattr('i._j', 1)"
    free = "self._k; l.__m__; n._replace(); o = '_p'"
    assert {name for _, name in private_names(f"{caught}; {free}")} == {"_b", "_d", "_f", "_h", "_j"}
    files = ((path, path.read_text(encoding="utf-8")) for path in sorted(TESTS.rglob("*.py")))
    found = [f"{path}:{line}: {name}" for path, source in files for line, name in private_names(source)]
    assert not found, "\n".join(["private names of others:", *found])
