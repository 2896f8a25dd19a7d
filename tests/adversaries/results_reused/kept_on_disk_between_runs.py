"""Results written to a file at the first call and read from it at every later one.

Caught as: WRONG
Needs: CPU or GPU
"""

import tempfile
from pathlib import Path

import torch
from right import gdn_prefill_forward as right
from tools import Argument, Result


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """What a file says for this shape."""
    shape = "-".join(str(size) for size in arguments[2].shape)
    path = Path(tempfile.gettempdir()) / f"kept-{shape}.pt"
    if not path.exists():
        torch.save(right(*arguments), path)
    return tuple(torch.load(path))
