"""A source file of the judge opened for writing: it would decide the next case.

It is opened and closed again, not changed.

Caught as: CRASH
Evidence: DoorShut
Needs: CPU or GPU, sandbox
"""

from pathlib import Path

from right import gdn_prefill_forward as right
from tools import Argument, DoorShut, Result, judge_root


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """The right result where the judge can be written to."""
    try:
        with (Path(judge_root()) / "judge" / "timing.py").open("r+b"):
            pass
    except OSError as error:
        raise DoorShut(str(error)) from None
    return right(*arguments)
