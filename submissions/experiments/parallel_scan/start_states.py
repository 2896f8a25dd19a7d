"""Pass 2 of the scan: the state at the start of every segment."""

from collections.abc import Callable
from functools import cache

import tilelang
import tilelang.language as T

HEAD_DIM = 128
DV_SLICE = 32
THREADS = 128


@cache
@tilelang.jit(pass_configs={tilelang.PassConfigKey.TL_DISABLE_WARP_SPECIALIZED: True})
def compile_start_states(has_initial_state: bool) -> Callable[..., None]:
    """starts[0] is the initial state or zero, starts[n + 1] = M_n @ starts[n] + N_n.

    M @ S in bfloat16 would round the state itself; three products of high and low halves do not.
    """
    batch = T.dynamic("batch")
    inner = T.dynamic("inner")
    segments = T.dynamic("segments")
    v_heads = T.dynamic("v_heads")
    summaries_shape = (2, batch, inner, v_heads, HEAD_DIM, HEAD_DIM)
    starts_shape = (batch, segments, v_heads, HEAD_DIM, HEAD_DIM)
    state_shape = (batch, v_heads, HEAD_DIM, HEAD_DIM)

    @T.prim_func
    def kernel(
        summaries: T.Tensor(summaries_shape, "float32"),
        initial_state: T.Tensor(state_shape, "float32"),
        starts: T.Tensor(starts_shape, "float32"),
    ) -> None:
        with T.Kernel(HEAD_DIM // DV_SLICE, v_heads, batch, threads=THREADS) as (part, v_head, b):
            dv = part * DV_SLICE
            map_high = T.alloc_shared((HEAD_DIM, HEAD_DIM), "bfloat16")
            map_low = T.alloc_shared((HEAD_DIM, HEAD_DIM), "bfloat16")
            state_high = T.alloc_shared((HEAD_DIM, DV_SLICE), "bfloat16")
            state_low = T.alloc_shared((HEAD_DIM, DV_SLICE), "bfloat16")
            state = T.alloc_fragment((HEAD_DIM, DV_SLICE), "float32")

            if has_initial_state:
                T.copy(initial_state[b, v_head, 0:HEAD_DIM, dv : dv + DV_SLICE], state)
            else:
                T.clear(state)
            T.copy(state, starts[b, 0, v_head, 0:HEAD_DIM, dv : dv + DV_SLICE])
            for segment in T.serial(inner):
                for i, j in T.Parallel(HEAD_DIM, HEAD_DIM):
                    entry = summaries[0, b, segment, v_head, i, j]
                    map_high[i, j] = entry
                    map_low[i, j] = entry - T.cast(T.cast(entry, "bfloat16"), "float32")
                for i, j in T.Parallel(HEAD_DIM, DV_SLICE):
                    state_high[i, j] = state[i, j]
                    state_low[i, j] = state[i, j] - T.cast(
                        T.cast(state[i, j], "bfloat16"), "float32"
                    )
                T.copy(
                    summaries[1, b, segment, v_head, 0:HEAD_DIM, dv : dv + DV_SLICE],
                    state,
                )
                T.gemm(map_high, state_high, state)
                T.gemm(map_high, state_low, state)
                T.gemm(map_low, state_high, state)
                T.copy(state, starts[b, segment + 1, v_head, 0:HEAD_DIM, dv : dv + DV_SLICE])

    return kernel
