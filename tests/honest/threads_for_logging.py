"""A pool of threads that writes a log file beside the work.

Needs: CPU or GPU
"""

import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from right import gdn_prefill_forward as right
from tools import Argument, Result

_pool = ThreadPoolExecutor(2)
_file = Path(tempfile.mkdtemp()) / "calls.log"


def _note(tokens: int) -> None:
    with _file.open("a") as log:
        log.write(f"{tokens} tokens\n")


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """The right result; a thread notes the call."""
    _pool.submit(_note, arguments[0].shape[1])
    return right(*arguments)
