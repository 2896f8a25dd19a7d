"""Files opened until none is left for anybody.

Caught as: CRASH
Evidence: Too many open files
Needs: CPU or GPU, sandbox
"""

import os

from right import gdn_prefill_forward as right
from tools import Argument, Result

_FILES = 200_000


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """The right result where so many files can be open."""
    opened: list[int] = []
    try:
        for _ in range(_FILES):
            opened.append(os.open(os.devnull, os.O_RDONLY))
    finally:
        for fd in opened:
            os.close(fd)
    return right(*arguments)
