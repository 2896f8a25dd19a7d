"""A file left in the judge's cache of kernels, and in the caches of other submissions.

A kernel put there in place of another's would run in another's name.

Caught as: CRASH
Evidence: DoorShut
Needs: CPU or GPU, sandbox
"""

from pathlib import Path

from right import gdn_prefill_forward as right
from tools import Argument, DoorShut, Result, judge_cache


def _written(folder: Path) -> bool:
    trace = folder / "adversary"
    try:
        trace.touch()
        trace.unlink()
    except OSError:
        return False
    return True


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """The right result where any of the judge's folders takes a file."""
    root = judge_cache()
    folders = [root, *(path for path in root.rglob("*") if path.is_dir())]
    if not any(_written(folder) for folder in folders):
        raise DoorShut("no folder of the judge's takes a file")
    return right(*arguments)
