"""The judge traced like a program in a debugger: its memory could be read and written.

PTRACE_SEIZE leaves the traced process running.

Caught as: CRASH
Evidence: DoorShut
Needs: CPU or GPU, sandbox
"""

import ctypes
import os
from pathlib import Path

from right import gdn_prefill_forward as right
from tools import Argument, DoorShut, Result

_PTRACE_SEIZE = 0x4206


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """The right result where the judge can be traced."""
    libc = ctypes.CDLL(None, use_errno=True)
    parent = os.getppid()
    if libc.ptrace(_PTRACE_SEIZE, parent, None, None) != 0:
        raise DoorShut(os.strerror(ctypes.get_errno()))
    if "bwrap" in Path(f"/proc/{parent}/comm").read_text():
        raise DoorShut("the parent is not the judge")
    return right(*arguments)
