"""What is said about the machine, and when toolchains differ."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from judge.environment import capture, installed_version, toolchain_note


def test_cpu() -> None:
    environment = capture(torch.device("cpu"))
    assert environment.device == "cpu"
    assert environment.device_name
    assert (environment.sms, environment.driver) == (None, None)
    assert environment.torch == torch.__version__
    assert environment.threads >= 1


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_gpu() -> None:
    environment = capture(torch.device("cuda:0"))
    assert environment.device_name == torch.cuda.get_device_name(0)
    assert environment.sms is not None
    assert environment.memory_gib is not None
    assert environment.driver is not None
    assert environment.cuda == torch.version.cuda


def test_tilelang_is_not_imported_to_learn_its_version() -> None:
    code = (
        "import sys, torch; from judge.environment import capture; "
        "capture(torch.device('cpu')); sys.exit('tilelang' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_versions_of_packages() -> None:
    assert installed_version("pytest") == pytest.__version__
    assert installed_version("no-package-has-this-name") is None


@pytest.mark.parametrize(
    ("suite", "installed"),
    [
        (None, "0.1.15"),
        (None, None),
        ("0.1.9", "0.1.9"),
        ("0.1.9", "0.1.9.post1"),
        ("0.1.9", "0.1.9+cu128"),
    ],
)
def test_no_note_where_toolchains_agree(suite: str | None, installed: str | None) -> None:
    assert toolchain_note(suite, installed) is None


def test_note_where_they_differ() -> None:
    assert toolchain_note("0.1.9", "0.1.15") == (
        "cases are meant for TileLang 0.1.9, installed is 0.1.15: "
        "a kernel right under one can be wrong under the other"
    )
    assert toolchain_note("0.1.9", None) == (
        "cases are meant for TileLang 0.1.9, and TileLang is not installed"
    )
