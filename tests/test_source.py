"""What ruff has no rule for: no step hides inside another, and no file grows beyond one idea."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src/fedcohort"
FILES = sorted(SOURCE.rglob("*.py"))
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
LONGEST_SUMMARY = 88
LONGEST_FILE = 300


def nested(tree, kinds):
    """Return the lines on which a node of these kinds holds another one of them."""
    lines = []
    for outer in ast.walk(tree):
        if not isinstance(outer, kinds):
            continue
        inner = [node for node in ast.walk(outer) if node is not outer and isinstance(node, kinds)]
        if inner:
            lines.append(outer.lineno)
    return lines


def functions(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def summaries(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module):
            documentation = ast.get_docstring(node)
            if documentation:
                yield documentation.splitlines()[0]


@pytest.fixture(params=FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def tree(request):
    return ast.parse(request.param.read_text(encoding="utf-8"))


def test_no_conditional_expression_holds_another(tree):
    assert nested(tree, (ast.IfExp,)) == []


def test_no_comprehension_holds_another(tree):
    assert nested(tree, COMPREHENSIONS) == []


def test_no_parameter_is_called_of(tree):
    parameters = {argument.arg for node in functions(tree) for argument in node.args.args}
    assert "of" not in parameters


def test_summaries_of_docstrings_fit_a_line(tree):
    assert [line for line in summaries(tree) if len(line) > LONGEST_SUMMARY] == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_file_holds_one_idea(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LONGEST_FILE


def test_no_two_files_of_tests_share_a_name():
    """Pytest collects only one of them, unless they are in packages."""
    names = []
    for path in Path(__file__).parent.rglob("test_*.py"):
        if not (path.parent / "__init__.py").exists():
            names.append(path.name)
    assert sorted(set(names)) == sorted(names)


def test_the_rules_find_what_they_are_for():
    bad = ast.parse("x = [y for y in [z for z in ()]] if a else b if c else d\ndef f(of): pass")
    assert nested(bad, (ast.IfExp,)) == [1]
    assert nested(bad, COMPREHENSIONS) == [1]
    assert [node.args.args[0].arg for node in functions(bad)] == ["of"]
