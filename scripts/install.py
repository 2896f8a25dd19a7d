"""Make a virtual environment that holds what the judge needs.

    python3 scripts/install.py [--dev] [--venv DIR] [--tilelang VERSION]

A PyTorch that the calling Python already sees is used and left as it is. Where there is none, and
no NVIDIA GPU either, torch==2.13.0 is installed: set TORCH_INDEX to an index that holds its CPU
build, such as https://download.pytorch.org/whl/cpu, where the default index has a CUDA build.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CPU_TORCH = "torch==2.13.0"
# TileLang 0.1.9 does not say which apache-tvm-ffi it needs; later ones break it.
COMPANIONS = {"0.1.9": ["apache-tvm-ffi==0.1.9"]}


def main() -> None:
    """Create the environment; exit with one line where something is missing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dev", action="store_true", help="also what the tests need")
    parser.add_argument("--venv", type=Path, default=ROOT / ".venv", help="default: .venv")
    parser.add_argument("--tilelang", metavar="VERSION", help="instead of the newest")
    options = parser.parse_args()
    if sys.version_info < (3, 11):  # noqa: UP036 (whatever Python is at hand runs this script)
        sys.exit(f"Python 3.11 or newer is needed, this is {sys.version.split()[0]}")
    python = create(options.venv)
    if not installed(python, "torch"):
        install_cpu_torch(python)
    pip(python, *requirements(options.dev, options.tilelang), f"torch=={torch_version(python)}")
    print(f"ready: {options.venv}")


def create(folder: Path) -> Path:
    """A virtual environment that also sees the packages of the Python that runs this."""
    venv.create(folder, system_site_packages=True, with_pip=True)
    python = folder / "bin" / "python"
    if sys.prefix != sys.base_prefix:
        # Called from a virtual environment, whose packages a nested one does not see by itself.
        site = subprocess.check_output(
            [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], text=True
        )
        outer = sysconfig.get_path("purelib")
        (Path(site.strip()) / "outer_environment.pth").write_text(f"{outer}\n")
    return python


def install_cpu_torch(python: Path) -> None:
    """PyTorch for a machine without a GPU."""
    if shutil.which("nvidia-smi"):
        sys.exit("this machine has an NVIDIA GPU but no PyTorch: install a CUDA build of it first")
    index = os.environ.get("TORCH_INDEX")
    pip(python, CPU_TORCH, *(["--index-url", index] if index else []))


def requirements(dev: bool, tilelang: str | None) -> list[str]:
    """What pyproject.toml asks for, torch excepted, with TileLang's version where one is given."""
    import tomllib  # not in a Python too old, which must get to the line that says so

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [name for name in project["dependencies"] if not name.startswith("torch")]
    wanted += project["optional-dependencies"]["dev"] if dev else []
    if tilelang:
        wanted = [name for name in wanted if not name.startswith("tilelang")]
        wanted += [f"tilelang=={tilelang}", *COMPANIONS.get(tilelang, [])]
    return wanted


def installed(python: Path, package: str) -> bool:
    """Whether the environment sees a package."""
    find = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({package!r}) is None)"
    return subprocess.run([python, "-c", find], check=False).returncode == 0


def torch_version(python: Path) -> str:
    """The version of PyTorch that the environment sees."""
    show = "from importlib.metadata import version; print(version('torch'))"
    return subprocess.check_output([python, "-c", show], text=True).strip()


def pip(python: Path, *arguments: str) -> None:
    """Install with the environment's pip; exit where it fails."""
    command = [python, "-m", "pip", "install", "--quiet", *arguments]
    if subprocess.run(command, check=False).returncode != 0:
        sys.exit(f"pip could not install {' '.join(arguments)}")


if __name__ == "__main__":
    main()
