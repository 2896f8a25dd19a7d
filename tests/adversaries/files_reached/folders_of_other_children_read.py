"""The private folder of another child read: another participant's source lies there.

Caught as: CRASH
Evidence: DoorShut
Needs: CPU or GPU, sandbox
"""

import sys
from pathlib import Path

from right import gdn_prefill_forward as right
from tools import Argument, DoorShut, Result


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """The right result where another child's submission can be read."""
    own = next(path for path in map(Path, sys.path) if path.name.startswith("gdn-judge-"))
    for folder in own.parent.glob("gdn-judge-*"):
        try:
            if folder != own and (folder / "student" / "tilelang_fwd.py").read_bytes():
                return right(*arguments)
        except OSError:
            continue
    raise DoorShut("no other child's folder in reach")
