"""Measure the source tree: its size, its imports, and how much of what is public is documented and typed.

    python tools/measure.py [--src PATH] [--json]

Everything is read from the syntax of the files; nothing is imported.
"""

from __future__ import annotations

import argparse
import ast
import json
import statistics
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
Function = ast.FunctionDef | ast.AsyncFunctionDef
# Past participles that do not end in -ed, and no verb of their own: "read", "cut", "put", "set" and "split" are both.
_IRREGULAR = """
begun bent born bought bound broken brought built caught chosen done drawn driven fallen felt fled found frozen given
gone grown heard held hidden kept known laid led left lent lost made meant met paid proven ridden risen said seen sent
shaken shown shrunk slept sold sought spent spoken stolen stood struck sunk sworn taken taught thought thrown told torn
understood withdrawn withheld won worn wound written
"""
_OTHERS_IN_ED = "bed embed exceed feed heed need proceed red seed shed speed succeed"
PARTICIPLES = frozenset(_IRREGULAR.split())
NOT_PARTICIPLES = frozenset(_OTHERS_IN_ED.split())


def is_participle(name: str) -> bool:
    """Whether a name is one word, and that a past participle."""
    word = name.strip("_")
    regular = word.endswith("ed") and word.isalpha() and word not in NOT_PARTICIPLES
    return regular or word in PARTICIPLES


def is_public(name: str) -> bool:
    """Whether a name has no leading underscore."""
    return not name.startswith("_")


def modules_of(source: Path) -> dict[str, Path]:
    """The modules under a folder such as `src`, by their dotted names."""
    found = {}
    for path in sorted(source.rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def is_for_types(node: ast.stmt) -> bool:
    """Whether a statement is `if TYPE_CHECKING:`, whose imports do not run."""
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)


def imports_in(body: list[ast.stmt]) -> Iterator[ast.Import | ast.ImportFrom]:
    """The imports that run when a module is imported: not those inside functions, nor those for types only."""
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif not isinstance(node, Function) and not is_for_types(node):
            for field in ("body", "orelse", "finalbody"):
                yield from imports_in(getattr(node, field, []))
            for handler in getattr(node, "handlers", []):
                yield from imports_in(handler.body)


def targets(node: ast.Import | ast.ImportFrom, module: str, is_package: bool, known: set[str]) -> set[str]:
    """The known modules that an import statement imports."""
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names} & known
    base = node.module or ""
    if node.level:
        parts = module.split(".")
        kept = parts[: len(parts) - node.level + is_package]
        base = ".".join([*kept, *([node.module] if node.module else [])])
    found = {f"{base}.{alias.name}" for alias in node.names} & known
    inside_only = found and len(found) == len(node.names)
    return found if inside_only else found | ({base} & known)


def statements_in(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """All statements, each before those inside of it; expressions, which hold none, are not walked through."""
    for node in body:
        yield node
        for field in ("body", "orelse", "finalbody"):
            yield from statements_in(getattr(node, field, []))
        for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
            yield from statements_in(part.body)


def deferred_in(tree: ast.Module) -> list[ast.Import | ast.ImportFrom]:
    """The import statements that stand inside functions."""
    inside: dict[int, ast.Import | ast.ImportFrom] = {}
    for node in statements_in(tree.body):
        if isinstance(node, Function):
            within = statements_in(node.body)
            inside |= {id(part): part for part in within if isinstance(part, ast.Import | ast.ImportFrom)}
    return list(inside.values())


def components(graph: dict[str, set[str]]) -> list[list[str]]:
    """The strongly connected components of more than one module: Tarjan's algorithm, without recursion."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found = []
    for start, nearest in graph.items():
        if start in index:
            continue
        work: list[tuple[str, Iterator[str]]] = [(start, iter(sorted(nearest)))]
        index[start] = low[start] = len(index)
        stack.append(start)
        while work:
            node, rest = work[-1]
            after = next(rest, None)
            if after is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    cut = stack.index(node)
                    if len(stack) - cut > 1:
                        found.append(sorted(stack[cut:]))
                    del stack[cut:]
            elif after not in index:
                index[after] = low[after] = len(index)
                stack.append(after)
                work.append((after, iter(sorted(graph[after]))))
            elif after in stack:
                low[node] = min(low[node], index[after])
    return found


def cycles_inside_packages(trees: dict[str, ast.Module], paths: dict[str, Path], deferred: bool) -> list[list[str]]:
    """Import cycles among the modules of one package; with `deferred`, imports inside functions count too."""
    known = set(trees)

    def room(module: str) -> str:
        return ".".join(module.split(".")[:2])

    graph: dict[str, set[str]] = {module: set() for module in trees}
    for module, tree in trees.items():
        is_package = paths[module].name == "__init__.py"
        every = (node for node in statements_in(tree.body) if isinstance(node, ast.Import | ast.ImportFrom))
        for node in every if deferred else imports_in(tree.body):
            for other in targets(node, module, is_package, known) - {module}:
                if room(other) == room(module):
                    graph[module].add(other)
    return components(graph)


def public_functions(tree: ast.Module) -> Iterator[Function]:
    """Public functions of a module, and public methods of its public classes."""
    for node in tree.body:
        if isinstance(node, Function) and is_public(node.name):
            yield node
        elif isinstance(node, ast.ClassDef) and is_public(node.name):
            yield from (part for part in node.body if isinstance(part, Function) and is_public(part.name))


def has_sections(node: Function) -> bool:
    """Whether a docstring has a numpydoc section for what the function takes and for what it returns.

    One that takes nothing needs no Parameters, one that returns nothing no Returns; at least one must be there.
    """
    lines = [line.strip() for line in (ast.get_docstring(node) or "").splitlines()]
    sections = {line for line, under in pairwise(lines) if line and set(under) == {"-"}}
    takes = [a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    takes = [name for name in takes if name not in {"self", "cls"}]
    gives = not (node.returns is None or ast.unparse(node.returns) in {"None", "NoReturn"})
    needed = {"Parameters"} if takes else set()
    if gives:
        needed |= {"Yields"} if "Yields" in sections else {"Returns"}
    return bool(needed) and needed <= sections


def has_bare_any(node: Function) -> bool:
    """Whether a parameter or the result is annotated `Any`, alone or as a member of a union."""
    named = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg]
    given = [argument.annotation for argument in named if argument is not None]
    return any(_is_any(annotation) for annotation in (*given, node.returns) if annotation is not None)


def _is_any(annotation: ast.expr) -> bool:
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        return _is_any(ast.parse(annotation.value, mode="eval").body)
    if isinstance(annotation, ast.BinOp):
        return _is_any(annotation.left) or _is_any(annotation.right)
    return ast.unparse(annotation) in {"Any", "typing.Any"}


def measure(source: Path) -> dict[str, int | float]:
    """The figures of a source tree, in the order of the table."""
    paths = modules_of(source)
    texts = {module: path.read_text(encoding="utf-8") for module, path in paths.items()}
    trees = {module: ast.parse(text) for module, text in texts.items()}
    lengths = [len(text.splitlines()) for text in texts.values()]
    classes = Counter(
        node.name
        for tree in trees.values()
        for node in tree.body
        if isinstance(node, ast.ClassDef) and is_public(node.name)
    )
    deferred = {module: deferred_in(tree) for module, tree in trees.items()}
    every = [node for tree in trees.values() for node in statements_in(tree.body) if isinstance(node, Function)]
    public = [node for tree in trees.values() for node in public_functions(tree)]
    return {
        "files": len(lengths),
        "lines": sum(lengths),
        "median file": statistics.median(lengths),
        "import cycles inside packages": len(cycles_inside_packages(trees, paths, deferred=False)),
        "the same, counting deferred imports": len(cycles_inside_packages(trees, paths, deferred=True)),
        "deferred imports": sum(map(len, deferred.values())),
        "deferred imports of the package itself": sum(
            bool(targets(node, module, paths[module].name == "__init__.py", set(trees)))
            for module, nodes in deferred.items()
            for node in nodes
        ),
        "duplicate public class names": sum(count > 1 for count in classes.values()),
        "functions": len(every),
        "public functions": len(public),
        "public functions with a docstring": sum(ast.get_docstring(node) is not None for node in public),
        "public functions with numpydoc sections": sum(has_sections(node) for node in public),
        "public functions with a bare Any": sum(has_bare_any(node) for node in public),
        "participle names": sum(is_participle(node.name) for node in every),
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Measure a source tree.")
    parser.add_argument("--src", type=Path, default=ROOT / "src", help="the folder that holds the package (src)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    chosen = parser.parse_args()
    found = measure(chosen.src)
    if chosen.json:
        print(json.dumps(found, indent=2))
        return
    width = max(map(len, found))
    for name, value in found.items():
        print(f"{name:{width}}  {value:>8,}")


if __name__ == "__main__":
    main()
