"""The hidden cases opened in the judge's own folder.

Caught as: CRASH
Evidence: DoorShut
Needs: CPU or GPU, sandbox
"""

from pathlib import Path

from right import gdn_prefill_forward as right
from tools import Argument, DoorShut, Result, judge_root


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """The right result where the hidden cases can be read."""
    try:
        (Path(judge_root()) / "cases" / "hidden.yaml").read_text()
    except OSError as error:
        raise DoorShut(str(error)) from None
    return right(*arguments)
