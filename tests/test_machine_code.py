"""Reading what ptxas and nvdisasm print, from samples of their own output."""

from __future__ import annotations

from pathlib import Path

from judge.child.machine_code import PtxasFigures, parse_ptxas, units_in_ptx, units_in_sass

# nvcc 13.0, two kernels of which the first calls a function that is not inlined
PTXAS = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'first_kernel' for 'sm_90a'
ptxas info    : Function properties for first_kernel
    392 bytes stack frame, 860 bytes spill stores, 868 bytes spill loads
ptxas info    : Function properties for helper
    16 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 64 registers, used 1 barriers, 392 bytes cumulative stack size, 1024 bytes smem
ptxas info    : Compile time = 12.3 ms
ptxas info    : Compiling entry function 'second_kernel' for 'sm_90a'
ptxas info    : Function properties for second_kernel
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 122 registers, used 1 barriers
ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized
"""


def test_ptxas_figures_belong_to_their_kernels() -> None:
    kernels, remarks = parse_ptxas(PTXAS)
    assert kernels == {
        "first_kernel": PtxasFigures(64, 392, 860, 868, 1024),
        "second_kernel": PtxasFigures(122, 0, 0, 0, 0),
    }
    assert remarks == [
        "(C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized"
    ]


def test_units_in_ptx_belong_to_their_kernels() -> None:
    ptx = """
    .visible .entry loads_kernel(.param .u64 a)
    { mbarrier.init.shared.b64 [%r1], 1; cp.async.bulk.tensor.2d.shared::cluster.global [%r2]; }
    .visible .entry multiplies_kernel(.param .u64 a)
    { wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 {%f1}; cp.async.cg.shared.global [%r]; }
    """
    assert units_in_ptx(ptx) == {
        "loads_kernel": ["tma", "mbarrier"],
        "multiplies_kernel": ["wgmma"],
    }


SASS = """\
.text.a_kernel:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/              @!P0 SYNCS.EXCH.64 URZ, [UR4], UR6 ;
        /*0020*/                   UTMALDG.2D [UR8], [UR4] ;
.text.b_kernel:
        /*0000*/                   HGMMA.64x32x16.F32.BF16 R24, gdesc[UR4], R24 ;
        /*0010*/                   EXIT ;
"""


def test_units_in_machine_code_belong_to_their_kernels(tmp_path: Path) -> None:
    listing = tmp_path / "listing"
    listing.write_text(SASS)
    tool = tmp_path / "nvdisasm"
    tool.write_text(f"#!/bin/sh\ncat {listing}\n")
    tool.chmod(0o755)
    assert units_in_sass(tmp_path / "kernel.cubin", str(tool)) == {
        "a_kernel": ["tma", "mbarrier"],
        "b_kernel": ["wgmma"],
    }
