"""Names read well: functions are verbs, and no name is used twice for different things."""

import ast
import collections
import re
from pathlib import Path

import mixnorm

PACKAGE = Path(mixnorm.__file__).parent
BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


def parse(folder):
    """Return the syntax trees of all modules in a folder, by path."""
    return {path: ast.parse(path.read_text()) for path in sorted(folder.rglob("*.py"))}


TREES = parse(PACKAGE)
PROPERTIES = {"property", "cached_property", "ability"}
IRREGULAR = {"begun", "built", "chosen", "done", "drawn", "found", "given", "gone", "grown", "held"}
IRREGULAR |= {"kept", "known", "left", "lost", "made", "met", "said", "seen", "sent", "shown"}
IRREGULAR |= {"ran", "taken", "told", "written"}
# They end like participles, and are none.
NOUNS_AND_VERBS = {"speed", "seed", "need", "feed", "embed"}


def is_participle(name):
    word = name.strip("_")
    if word in NOUNS_AND_VERBS:
        return False
    return word in IRREGULAR or re.fullmatch(r"[a-z]+ed", word) is not None


def decorators(function):
    """Return the names of the decorators of a function."""
    found = [node.func if isinstance(node, ast.Call) else node for node in function.decorator_list]
    return {getattr(node, "id", getattr(node, "attr", "")) for node in found}


def test_no_function_is_a_bare_participle():
    """``transpose``, not ``turned``; a property is a value and may be ``interrupted``."""
    bad = [
        f"{'/'.join(path.parts[-3:])}:{node.lineno} {node.name}"
        for path, tree in (TREES | parse(BENCHMARKS)).items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and is_participle(node.name)
        and not decorators(node) & PROPERTIES
    ]
    assert bad == []


def test_participles_are_told_from_other_words():
    assert all(map(is_participle, ["_turned", "made", "fitted", "_checked"]))
    assert not any(map(is_participle, ["turn", "_speed", "squared_norms", "check", "between"]))


def defined_in_several(kind):
    """Return the names that modules define at their top level, and where, if in more than one."""
    places = collections.defaultdict(set)
    for path, tree in TREES.items():
        for name in kind(tree):
            places[name].add(str(path.relative_to(PACKAGE)))
    return {name: found for name, found in places.items() if len(found) > 1}


def private_constants(tree):
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        for target in [one for part in targets for one in getattr(part, "elts", [part])]:
            if isinstance(target, ast.Name) and re.match("_[A-Z]", target.id):
                yield target.id


def test_a_private_constant_has_one_module():
    assert defined_in_several(private_constants) == {}


def classes(tree):
    return [node.name for node in tree.body if isinstance(node, ast.ClassDef)]


def test_a_class_has_one_module():
    assert defined_in_several(classes) == {}
