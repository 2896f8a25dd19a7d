"""Whether a submission's source keeps the lab's rules: work done in TileLang, nothing forbidden."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from judge.submission import Submission
from judge.verdict import Rules

FORBIDDEN_MODULES = frozenset(
    {"reference", "references", "judge", "flash_qla", "fla", "flashinfer"}
)
LAB_MODULE = "references.torch_gdr"
_IMPORT_CALLS = frozenset({"import_module", "__import__"})


def scan_source(submission: Submission) -> tuple[Rules, str]:
    """Read every Python file of a submission; the word, and one line that says where and what.

    Imports count wherever they stand, in functions too, and as `importlib.import_module("x")` or
    `__import__("x")`. A module of that name among the submission's own files is its own. A file
    that does not parse is passed over: importing it will say more.
    """
    own = {name.split("/")[0].removesuffix(".py") for name in submission.files}
    uses_tilelang = False
    for name, content in sorted(submission.files.items()):
        if not name.endswith(".py"):
            continue
        try:
            tree = ast.parse(content)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        for line, module in _imported_modules(tree):
            top = module.partition(".")[0]
            if top in FORBIDDEN_MODULES and top not in own:
                return Rules.FORBIDDEN_IMPORT, f"{name}:{line} imports {module}"
            uses_tilelang = uses_tilelang or (top == "tilelang" and top not in own)
    if not uses_tilelang:
        return Rules.NO_TILELANG, "no file imports tilelang"
    return Rules.OK, ""


def judge_loaded(
    scanned: tuple[Rules, str], forbidden: list[str], tilelang_launches: int, on_cuda: bool
) -> tuple[Rules, str]:
    """Add to what the source says what the child saw while the submission ran.

    forbidden: modules loaded that the rules forbid; no other name is repeated, as a hostile child
    could put into one what it has seen. tilelang_launches: TileLang kernels that the
    untimed calls of a child have launched so far, this one's included (a CUDA graph captured for an
    earlier case may serve again); none breaks the rule on CUDA, where the work would be done.
    """
    rules, _ = scanned
    known = [name for name in forbidden if name in (*FORBIDDEN_MODULES, LAB_MODULE)]
    if rules is Rules.OK and known:
        return Rules.FORBIDDEN_IMPORT, f"loaded {', '.join(known)} while it ran"
    if rules is Rules.OK and on_cuda and tilelang_launches == 0:
        return Rules.NO_TILELANG, "a call launched no TileLang kernel"
    return scanned


def _imported_modules(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.lineno, node.module
        elif isinstance(node, ast.Call) and _called_name(node) in _IMPORT_CALLS and node.args:
            argument = node.args[0]
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                yield node.lineno, argument.value


def _called_name(node: ast.Call) -> str:
    function = node.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""
