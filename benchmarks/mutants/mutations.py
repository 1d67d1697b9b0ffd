"""Small, realistic mistakes: all that can be made in a module, one at a time."""

from __future__ import annotations

import ast
import copy
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# A node of the syntax tree, the kind of mistake, and the node with the mistake.
Change = tuple[ast.AST, str, ast.AST]

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult,
}  # fmt: skip
# Functions that are easily confused.
_TWINS = {
    first: second
    for pair in (
        ("min", "max"), ("minimum", "maximum"), ("any", "all"), ("argmin", "argmax"),
        ("floor", "ceil"), ("zeros", "ones"), ("zeros_like", "ones_like"),
    )
    for first, second in (pair, pair[::-1])
}  # fmt: skip
# Swapping the arguments of these functions changes nothing.
_SYMMETRIC = ("min", "max", "minimum", "maximum", "hypot", "logaddexp", "array_equal", "multiply")
_DROPPED = ("abs", "sqrt", "square", "fabs", "log1p", "ravel")  # f(x) becomes x
# Statements with only words, types or names: mistakes in them change no result.
_SKIPPED = (ast.Raise, ast.Assert, ast.Import, ast.ImportFrom, ast.JoinedStr, ast.Global)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Mutation:
    """One change to one file.

    Parameters
    ----------
    path : str
        The file, relative to the package: ``"norms/mixed.py"``.
    function : str
        The function that changes, with its class.
    operator : str
        The kind of mistake.
    before, after : str
        The piece of code before and after the change.
    start, stop : int
        The position of the piece in bytes.
    """

    path: str
    function: str
    operator: str
    before: str
    after: str
    start: int
    stop: int

    @property
    def key(self) -> str:
        """A name that stays the same when other parts of the file change."""
        return f"{self.path}::{self.function}::{self.before} -> {self.after}"

    def apply(self, text: bytes) -> bytes:
        """Return the file with the change."""
        return text[: self.start] + self.after.encode() + text[self.stop :]


def find_mutations(path: str, text: bytes) -> list[Mutation]:
    """Return all mutations of the functions of a file, in order."""
    lines = [0]
    for line in text.splitlines(keepends=True):
        lines.append(lines[-1] + len(line))
    found: dict[str, Mutation] = {}
    for name, node in _find_functions(ast.parse(text), ""):
        changes = (change for part in _find_pieces(node.body) for change in _make_mistakes(part))
        for piece, operator, changed in changes:
            start = lines[piece.lineno - 1] + piece.col_offset
            stop = lines[piece.end_lineno - 1] + piece.end_col_offset
            before = " ".join(text[start:stop].decode().split())
            mutation = Mutation(path, name, operator, before, _write_source(changed), start, stop)
            found.setdefault(mutation.key, mutation)  # the first of equal pieces
    return list(found.values())


def _find_functions(node: ast.AST, prefix: str) -> Iterator[tuple[str, ast.AST]]:
    """Yield the outermost functions below a node, with their qualified names."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _FUNCTIONS):
            if child.name != "__repr__":
                yield f"{prefix}{child.name}", child
        elif isinstance(child, ast.ClassDef):
            yield from _find_functions(child, f"{prefix}{child.name}.")
        elif isinstance(child, ast.If | ast.Try):
            yield from _find_functions(child, prefix)


def _find_pieces(nodes: list[ast.AST]) -> Iterator[ast.AST]:
    """Yield the expressions and statements in which mistakes are made."""
    for node in nodes:
        if isinstance(node, _SKIPPED) or _is_warning(node):
            continue
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue  # a docstring
        if isinstance(node, ast.expr | ast.stmt):
            yield node
        skipped = {"annotation", "returns", "decorator_list", "type_comment"}
        for name, value in ast.iter_fields(node):
            if name not in skipped:
                children = value if isinstance(value, list) else [value]
                yield from _find_pieces([child for child in children if isinstance(child, ast.AST)])


def _is_warning(node: ast.AST) -> bool:
    call = node.value if isinstance(node, ast.Expr) else None
    return isinstance(call, ast.Call) and "warn" in ast.unparse(call.func)


def _make_mistakes(node: ast.AST) -> Iterator[Change]:
    """Yield the mistakes that can be made in one piece, but not in its parts."""
    match node:
        case ast.Compare(ops=[operator]) if type(operator) in _COMPARISONS:
            yield node, "comparison", _replace_fields(node, ops=[_COMPARISONS[type(operator)]()])
        case ast.BinOp() if type(node.op) in _ARITHMETIC and not _is_text(node):
            yield node, "arithmetic", _replace_fields(node, op=_ARITHMETIC[type(node.op)]())
        case ast.AugAssign() if type(node.op) in _ARITHMETIC:
            yield node, "arithmetic", _replace_fields(node, op=_ARITHMETIC[type(node.op)]())
            yield node, "left out", ast.Pass()
        case ast.Constant(value=bool()):
            yield node, "switch", ast.Constant(not node.value)
        case ast.Constant(value=int()):
            yield node, "number", ast.Constant(node.value + 1)
        case ast.Constant(value=float()):
            yield node, "number", ast.Constant(2.0 * node.value if node.value else 1.0)
        case ast.BoolOp():
            other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield node, "logic", _replace_fields(node, op=other)
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            yield node, "sign", node.operand
        case ast.If() | ast.While() | ast.IfExp() if not isinstance(node.test, ast.Constant):
            yield node.test, "condition", ast.UnaryOp(ast.Not(), node.test)
        case ast.Call():
            yield from _make_call_mistakes(node)
        case ast.Expr(value=ast.Call()) | ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield node, "left out", ast.Pass()


def _make_call_mistakes(node: ast.Call) -> Iterator[Change]:
    match node.func:
        case ast.Name(id=name):
            twin: ast.expr = ast.Name(_TWINS.get(name, ""))
        case ast.Attribute(attr=name):
            twin = _replace_fields(node.func, attr=_TWINS.get(name, ""))
        case _:
            return
    if name in _TWINS:
        yield node, "twin", _replace_fields(node, func=twin)
    if name in _DROPPED and len(node.args) == 1 and not node.keywords:
        yield node, "left out", node.args[0]
    names = all(isinstance(each, ast.Name) for each in node.args)
    if len(node.args) == 2 and names and name not in _SYMMETRIC:
        yield node, "order", _replace_fields(node, args=node.args[::-1])
    for place, keyword in enumerate(node.keywords):
        value = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
        if keyword.arg == "axis" and value in (0, 1):
            other = ast.keyword("axis", ast.Constant(1 - value))
            keywords = [*node.keywords[:place], other, *node.keywords[place + 1 :]]
            yield node, "axis", _replace_fields(node, keywords=keywords)


def _is_text(node: ast.BinOp) -> bool:
    """Return whether an operation joins or repeats strings."""
    return any(
        isinstance(part, ast.JoinedStr | ast.List | ast.Tuple)
        or (isinstance(part, ast.Constant) and isinstance(part.value, str))
        for part in (node.left, node.right)
    )


def _replace_fields(node: ast.AST, **fields: object) -> ast.AST:
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed


def _write_source(node: ast.AST) -> str:
    """Return the source of a piece; parentheses let an expression stand inside others."""
    text = ast.unparse(ast.fix_missing_locations(node))
    return f"({text})" if isinstance(node, ast.expr) else text


def draw(package: Path, rooms: tuple[str, ...], count: int, seed: int) -> list[Mutation]:
    """Draw mutations from rooms of a package, in proportion to their numbers.

    The key of a mutation and the seed give its place in a random order. A change of the code
    therefore changes few of the drawn mutations.
    """
    found: list[Mutation] = []
    for room in rooms:
        for path in sorted((package / room).rglob("*.py")):
            found += find_mutations(path.relative_to(package).as_posix(), path.read_bytes())

    def place(mutation: Mutation) -> str:
        return hashlib.sha256(f"{seed} {mutation.key}".encode()).hexdigest()

    return sorted(sorted(found, key=place)[:count], key=lambda each: (each.path, each.start))
