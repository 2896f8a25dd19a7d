"""The rights of root asked back: user 0, then all capabilities.

Caught as: CRASH
Evidence: DoorShut
Needs: CPU or GPU, sandbox
"""

import os

from right import gdn_prefill_forward as right
from tools import Argument, DoorShut, Result


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """The right result where root's rights are to be had."""
    try:
        os.setgroups([0])
        os.setresgid(0, 0, 0)
        os.setresuid(0, 0, 0)
    except OSError as error:
        raise DoorShut(str(error)) from None
    return right(*arguments)
