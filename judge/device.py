"""Which device a run uses, and what of it a child may see."""

from __future__ import annotations

import os

import torch

MIG = "MIG-"
"""How the UUID of a MIG instance begins, as CUDA_VISIBLE_DEVICES takes it."""


class DeviceError(ValueError):
    """A device that is not there; the text is one line that says what is."""


def choose_device(name: str) -> torch.device:
    """The device for `--device` auto, cpu, cuda or cuda:N. Raises DeviceError."""
    if name == "cpu" or (name == "auto" and not torch.cuda.is_available()):
        return torch.device("cpu")
    if name == "auto":
        name = "cuda"
    kind, _, index = name.partition(":")
    if kind != "cuda" or (index and not index.isdecimal()) or name.endswith(":"):
        raise DeviceError(f"--device {name}: no such device; use auto, cuda, cuda:N or cpu")
    if not torch.cuda.is_available():
        raise DeviceError(f"--device {name}: this machine has no CUDA device; use --device cpu")
    number = int(index or 0)
    if number >= torch.cuda.device_count():
        raise DeviceError(
            f"--device {name}: there is no such device; the last one is "
            f"cuda:{torch.cuda.device_count() - 1}"
        )
    return torch.device("cuda", number)


def child_view(device: torch.device) -> tuple[str, str | None]:
    """The device's name in a child, and the CUDA_VISIBLE_DEVICES that shows it nothing else."""
    if device.type == "cpu":
        return "cpu", ""
    visible = [name for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name]
    if not visible and torch.cuda.device_count() == 1:
        return "cuda:0", None
    return "cuda:0", visible[device.index] if visible else str(device.index)


def gpu_identity(device: torch.device) -> str:
    """A name of the GPU, or of the MIG instance, that holds across processes: its UUID."""
    _, visible = child_view(device)
    if visible is not None and visible.startswith(MIG):  # its GPU's UUID is that of others too
        return visible
    return str(torch.cuda.get_device_properties(device).uuid)
