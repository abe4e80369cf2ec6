"""The wheel as users install it, and a project of theirs that could not care less about how our source is laid out."""

import subprocess
import sys
import zipfile
from pathlib import Path

from tests.deploy.manifests import PROJECT

NAMES_OF_ANYBODY = ("services", "shared", "tests")


def build(directory: Path) -> Path:
    """The wheel, unpacked as pip would."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(directory)]
    subprocess.run(command, cwd=PROJECT, check=True, capture_output=True)
    (wheel,) = directory.glob("*.whl")
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
