"""The wheel as users install it, and a project of theirs that could not care less about how our source is laid out."""

import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

from tests.deploy.manifests import PROJECT

NAMES_OF_ANYBODY = ("services", "shared", "tests")


def wheel_in(directory: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(directory)]
    subprocess.run(command, cwd=PROJECT, check=True, capture_output=True)
    (wheel,) = directory.glob("*.whl")
    return wheel


def fresh_environment(place: Path) -> Path:
    """A Python of its own with the wheel installed, commands and all. What that needs is the tests' own: its packages
    are found after the wheel, and a path file that is read so does not lead on to the one of our editable install."""
    wheel = wheel_in(place)
    environment = place / "environment"
    venv.create(environment, with_pip=False, symlinks=True)
    (site,) = (environment / "lib").glob("python*/site-packages")
    install = ["-m", "uv", "pip", "install", "--quiet", "--offline", "--no-cache", "--no-deps", "--compile-bytecode"]
    python = str(environment / "bin" / "python")
    subprocess.run([sys.executable, *install, "--python", python, str(wheel)], check=True, capture_output=True)
    (site / "what_it_needs.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    return environment


def build(directory: Path) -> Path:
    """The wheel, unpacked as pip would."""
    wheel = wheel_in(directory)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(directory / "site")
    subprocess.run([sys.executable, "-m", "compileall", "-q", str(directory / "site")], check=True)
    return directory / "site"


def a_project_with_our_names(directory: Path) -> None:
    """Packages that say so when they are imported by mistake."""
    for name in NAMES_OF_ANYBODY:
        package = directory / name
        package.mkdir(parents=True)
        (package / "__init__.py").write_text(
            f"raise ImportError(\"{name} is the project's own, and none of Windlass'\")\n"
        )
