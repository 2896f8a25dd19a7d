"""The lab's reference taken out of sys.modules, where no import statement names it.

Caught as: rules forbidden_import
Evidence: references
Needs: CPU or GPU
"""

import sys

import tilelang
import tilelang.language as T
from tools import Argument, Result


@tilelang.jit
def _decoy() -> object:
    @T.prim_func
    def kernel(a: T.Tensor((128,), "float32")) -> None:
        with T.Kernel(1, threads=128):
            for i in T.Parallel(128):
                a[i] = 1

    return kernel


def gdn_prefill_forward(*arguments: Argument) -> Result:
    """What the reference says, beside a TileLang kernel that does nothing."""
    if arguments[2].is_cuda:
        _decoy()(arguments[4].new_empty(128))
    forward = sys.modules["references" + ".torch_gdr"].torch_gdn_prefill_forward
    return forward(*arguments, student_interface=True)
