"""The Job that puts a restored database right, as the operators' book makes it of the one that migrates."""

import subprocess

import pytest
import yaml

from tests.deploy.manifests import DEPLOY
from tests.support.shown_commands import blocks_of
from windlass.services.cli.main import build_parser

BEFORE = "kubectl kustomize deploy/k8s/overlays/ours |"
AFTER = "| kubectl apply -f -"


def the_filter() -> str:
    """What stands on the page between the two calls of kubectl."""
    (block,) = [each for each in blocks_of("operating.md") if BEFORE in each and AFTER in each]
    return block.partition(BEFORE)[2].partition(AFTER)[0]


@pytest.mark.parametrize("overlay", ["production", "dev"])
def test_the_job_that_the_page_makes_is_one_that_the_command_line_understands(overlay: str) -> None:
    rendered = (DEPLOY / "k8s" / "rendered" / f"{overlay}.yaml").read_text()
    done = subprocess.run(
        ["sh", "-e", "-c", the_filter()], input=rendered, capture_output=True, text=True, timeout=60, check=True
    )
    (job,) = [each for each in yaml.safe_load_all(done.stdout) if each]
    assert (job["kind"], job["metadata"]["name"]) == ("Job", "after-restore")
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert container["args"][0] == "after-restore"
    build_parser().parse_args(container["args"])
