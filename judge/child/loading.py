"""Importing the submission inside the child, and what it brought along."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path

from judge.child.lab_modules import LAB_PACKAGE, reference_was_called
from judge.child.protocol import Failed
from judge.rules import FORBIDDEN_MODULES, LAB_MODULE

FUNCTION = "gdn_prefill_forward"
PACKAGE = "student"


def import_function(entry: str) -> tuple[Callable[..., object] | None, Failed | None]:
    """The function that a module file of the package exports, or why there is none.

    Raises whatever the import raises.
    """
    module = importlib.import_module(f"{PACKAGE}.{Path(entry).stem}")
    function = getattr(module, FUNCTION, None)
    if callable(function):
        return function, None
    error = f"{entry} exports no function {FUNCTION}"
    return None, Failed(error=error, compiling=False, needs_cuda=False)


def forbidden_loaded(folder: str) -> list[str]:
    """Forbidden modules in memory, those excepted that are the submission's own files.

    The lab's module is always there, so it counts once its function has been called.
    """
    called = [LAB_MODULE] if reference_was_called() else []
    return called + sorted(
        name
        for name in FORBIDDEN_MODULES - {LAB_PACKAGE}
        if (module := sys.modules.get(name)) is not None
        and not str(getattr(module, "__file__", "")).startswith(folder)
    )
