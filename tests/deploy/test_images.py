"""The images that Windlass is built on and runs beside: each of an exact version, listed once, pinned by a script."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.deploy.manifests import PROJECT

DEPLOY = PROJECT / "deploy"
REFERENCE = re.compile(r"^(?:\s*(?:- )?(?:image|imageName): |FROM )['\"]?([^\s'\"]+)", re.MULTILINE)
OURS = re.compile(r"(?:our-)?windlass(?::|$)")
VERSION = re.compile(r"[a-z0-9./-]+:v?\d+\.\d+(?:\.\d+)?(?:-[a-z-]+)?(@sha256:[0-9a-f]{64})?")
DIGEST = "sha256:" + "0123456789abcdef" * 4

REGISTRY = """#!/bin/sh
case "$*" in
    *{unknown}*) echo "manifest unknown" >&2; exit 1 ;;
    "inspect --format {{{{.Digest}}}} docker://"*@*) exit 1 ;;
    "inspect --format {{{{.Digest}}}} docker://"*:*) echo {digest} ;;
    *) exit 1 ;;
esac
"""


def listed(deploy: Path) -> list[str]:
    return (deploy / "images.txt").read_text().splitlines()


def used(deploy: Path) -> set[str]:
    """In everything that is written by hand; what is rendered from it has a test of its own."""
    files = [each for each in deploy.rglob("*") if each.suffix == ".yaml" or each.name == "Dockerfile"]
    texts = [each.read_text() for each in files if "rendered" not in each.parts]
    return {image for text in texts for image in REFERENCE.findall(text) if not OURS.match(image)}


def pin(deploy: Path, programs: Path, *, unknown: str = "nothing-of-this-name") -> int:
    programs.mkdir(exist_ok=True)
    (programs / "skopeo").write_text(REGISTRY.format(unknown=unknown, digest=DIGEST))
    (programs / "skopeo").chmod(0o755)
    path = f"{programs}:{os.environ['PATH']}"
    return subprocess.run([deploy / "pin-images"], env={"PATH": path}, check=False).returncode


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return Path(shutil.copytree(DEPLOY, tmp_path / "deploy", ignore=shutil.ignore_patterns(".env")))


def test_every_image_is_of_an_exact_version_and_listed() -> None:
    assert used(DEPLOY) == set(listed(DEPLOY))
    for image in listed(DEPLOY):
        assert VERSION.fullmatch(image), image


def test_the_script_writes_digests_wherever_an_image_is_used(copy: Path, tmp_path: Path) -> None:
    tags = [image.partition("@")[0] for image in listed(copy)]
    for _ in range(2):
        assert pin(copy, tmp_path / "programs") == 0
        assert listed(copy) == [f"{tag}@{DIGEST}" for tag in tags]
        assert used(copy) == set(listed(copy))
    for image in listed(copy):
        assert VERSION.fullmatch(image), image


def test_the_script_changes_nothing_when_a_digest_cannot_be_found(copy: Path, tmp_path: Path) -> None:
    before = (listed(copy), used(copy))
    assert pin(copy, tmp_path / "programs", unknown="grafana") != 0
    assert (listed(copy), used(copy)) == before
