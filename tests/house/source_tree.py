"""The source tree as the house tests look at it: files, functions, names and handlers, read with `ast`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src" / "milepost"
AnyFunction = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Function:
    """One function or method: where it stands, its own text without docstring, its docstring."""

    file: str  # relative to the root of the repository
    name: str  # qualified within the file
    length: int
    doc: str
    node: AnyFunction

    @property
    def code(self) -> str:
        """Return the function's code without docstring and without the functions inside it."""
        body = self.node.body[1:] if self.doc else self.node.body
        inner = (ast.FunctionDef, ast.AsyncFunctionDef)
        return "\n".join(ast.unparse(statement) for statement in body if not isinstance(statement, inner))


def python_files(*folders: str) -> list[Path]:
    """Return the Python files below folders of the repository, in order."""
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]


def shown(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def parsed(path: Path) -> ast.Module:
    """Parse a file, once more when a collection disturbed the parser (see `milepost.versions`)."""
    source = path.read_text(encoding="utf-8")
    try:
        return ast.parse(source)
    except SystemError:
        return ast.parse(source)


def functions(path: Path) -> Iterator[Function]:
    """Yield every function of a file, methods and inner functions included."""
    yield from _within(path, parsed(path), "")


def _within(path: Path, node: ast.AST, prefix: str) -> Iterator[Function]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, AnyFunction):
            length = (child.end_lineno or child.lineno) - child.lineno + 1
            yield Function(shown(path), prefix + child.name, length, ast.get_docstring(child) or "", child)
        inner = prefix + child.name + "." if isinstance(child, (*AnyFunction.__args__, ast.ClassDef)) else prefix
        yield from _within(path, child, inner)


def given_names(path: Path) -> set[str]:
    """Return the names a file gives: functions, classes, parameters, variables and attributes it sets."""
    found: set[str] = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.attr)
    return found


def broad_handlers(path: Path) -> list[str]:
    """Return where a file catches `Exception`, `BaseException` or everything: one qualified function name each."""
    found: list[str] = []
    for function in functions(path):
        inner = [node for child in ast.iter_child_nodes(function.node) for node in _own_nodes(child)]
        found += [function.name for node in inner if isinstance(node, ast.ExceptHandler) and _is_broad(node)]
    return found


def _own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Walk a node, but not into functions defined inside it."""
    if isinstance(node, AnyFunction):
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from _own_nodes(child)


def _is_broad(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    return any(isinstance(n, ast.Name) and n.id in ("Exception", "BaseException") for n in ast.walk(handler.type))


def calls(path: Path) -> Iterator[ast.Call]:
    """Yield every call in a file."""
    return (node for node in ast.walk(parsed(path)) if isinstance(node, ast.Call))
