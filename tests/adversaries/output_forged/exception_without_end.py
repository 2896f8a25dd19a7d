"""An exception whose text has a hundred million characters, and whose class is called PASS.

Caught as: CRASH
Evidence: PASS: all right
Needs: CPU or GPU
"""

from tools import Argument, Result


class PASS(BaseException):
    """A name for a report."""

    def __str__(self) -> str:
        return "all right " * 10_000_000


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """Raises."""
    raise PASS
