"""The GPUs that a submission can be checked for: the figures that decide whether a kernel fits."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DeviceProfile:
    """One device, or one MIG slice of it.

    name: as asked for. device_name: as torch names it. sms: streaming multiprocessors.
    memory: bytes of device memory. shared_per_block: largest shared memory of one block after
    opting in, in bytes; shared_per_sm: of one SM; shared_reserved: what the driver takes of it
    for each block. registers_per_sm: 32-bit registers. threads_per_sm, threads_per_block,
    blocks_per_sm: largest numbers. capability: compute capability, major and minor.
    """

    name: str
    device_name: str
    sms: int
    memory: int
    l2_cache: int
    shared_per_block: int = 227 * 1024
    shared_per_sm: int = 228 * 1024
    shared_reserved: int = 1024
    registers_per_sm: int = 65536
    threads_per_sm: int = 2048
    threads_per_block: int = 1024
    blocks_per_sm: int = 32
    capability: tuple[int, int] = (9, 0)


_GIB = 2**30
_MIB = 2**20

PROFILES = {
    profile.name: profile
    for profile in (
        # The lab's slice. Its L2 share is an eighth of the H800's 50 MiB.
        DeviceProfile(
            "h800-mig-1g.10gb", "NVIDIA H800 MIG 1g.10gb", 14, 10 * 10**9, 50 * _MIB // 8
        ),
        DeviceProfile("h100", "NVIDIA H100 80GB HBM3", 132, 80 * _GIB, 50 * _MIB),
        DeviceProfile("h200", "NVIDIA H200", 132, 141 * 10**9, 60 * _MIB),
    )
}
DEFAULT_PROFILE = "h800-mig-1g.10gb"
TARGET = '{"kind": "cuda", "arch": "sm_90a"}'
"""What TileLang compiles for: all profiles are Hopper, with its architecture-specific features."""
