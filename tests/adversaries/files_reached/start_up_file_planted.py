"""A .pth file planted among Python's packages: it would run in the judge's next process.

It is removed again at once.

Caught as: CRASH
Evidence: DoorShut
Needs: CPU or GPU, sandbox
"""

import sys
from pathlib import Path

from right import gdn_prefill_forward as right
from tools import Argument, DoorShut, Result


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """The right result where Python's packages can be added to."""
    for folder in {path for path in sys.path if path.endswith(("site-packages", "dist-packages"))}:
        planted = Path(folder) / "adversary.pth"
        try:
            planted.touch()
            planted.unlink()
        except OSError:
            continue
        return right(*arguments)
    raise DoorShut("no package folder takes a file")
