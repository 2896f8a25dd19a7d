"""The lab's own PyTorch reference called.

Caught as: rules forbidden_import
Evidence: imports references.torch_gdr
Needs: CPU or GPU
"""

import tilelang  # noqa: F401
from references.torch_gdr import torch_gdn_prefill_forward
from tools import Argument, Result


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """What the reference says."""
    return torch_gdn_prefill_forward(*arguments, student_interface=True)
