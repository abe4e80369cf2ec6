"""The TypeScript client as a user installs it: from its directory and from its tarball, without a network."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.installation import KEY, PROJECT, Windlass

PACKAGE = PROJECT / "clients" / "typescript"
NODE = PROJECT / ".venv" / "node" / "bin"
TYPESCRIPT = PACKAGE / "node_modules" / "typescript" / "bin" / "tsc"
CONSUMER = """
import { Refused, TaskDead, Windlass } from "windlass-client";

const windlass = new Windlass({ url: process.argv[2] ?? "", key: process.argv[3] ?? "" });

const done = await windlass.run<{ echo: string }>({ actor: "probe", payload: { seconds: 0.1, result: "hello" } });
console.log(done.status, done.result.echo.toUpperCase());

const task = await windlass.createTask({ actor: "probe", payload: { seconds: 0.1, result: "again" } });
const ended = await windlass.wait<{ echo: string }>(task.task_id, { timeoutMs: 60_000 });
if (ended.status === "completed") console.log(ended.result.echo);

const listed = await windlass.rest.GET("/api/v1/tasks", { params: { query: { status: ["completed"], limit: 1 } } });
console.log(listed.data?.items.length);

try {
  await windlass.run({ actor: "probe", payload: { outcome: "permanent" } });
} catch (error) {
  if (error instanceof TaskDead) console.log(error.task.error?.type);
}
try {
  await windlass.run({ actor: "probe", payload: { seconds: -1 } });
} catch (error) {
  if (error instanceof Refused) console.log(error.code, error.errors.map((each) => each.pointer).join());
}
"""
SAID = """\
completed HELLO
again
1
InvalidInput
invalid-payload /payload/seconds
"""
MISTAKES = """
import { Windlass } from "windlass-client";

const windlass = new Windlass();
const { result } = await windlass.run<{ echo: string }>({ actor: "probe", payload: {} });
result.nothing;
await windlass.rest.GET("/api/v1/nothing");
await windlass.rest.GET("/api/v1/tasks/{task_id}");
"""

pytestmark = pytest.mark.skipif(
    not (NODE / "node").exists() or not TYPESCRIPT.exists(), reason="`make web` installs Node and TypeScript"
)


@pytest.mark.parametrize(
    ("source", "module", "resolution"), [("directory", "nodenext", "nodenext"), ("tarball", "esnext", "bundler")]
)
def test_an_installed_client_type_checks_and_runs(
    source: str, module: str, resolution: str, running_windlass: Windlass, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "package.json").write_text(json.dumps({"name": "consumer", "private": True, "type": "module"}))
    shipped = a_clean_copy(tmp_path / "clone")
    if source == "tarball":
        npm(tmp_path, "pack", str(shipped))
        (shipped,) = tmp_path.glob("*.tgz")
    npm(project, "install", str(shipped))
    (project / "consumer.ts").write_text(CONSUMER)
    (shown,) = re.findall(r"^```ts\n(.*?)^```", (PACKAGE / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    (project / "readme.ts").write_text(shown)
    files = ("consumer.ts", "readme.ts")
    compiled = tsc(project, *files, "--module", module, "--moduleResolution", resolution)
    assert compiled.returncode == 0, compiled.stdout
    said = node(project, "consumer.js", running_windlass.url, KEY)
    assert said.stdout == SAID, said.stderr


def test_mistakes_are_type_errors(tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text(json.dumps({"name": "consumer", "private": True, "type": "module"}))
    npm(tmp_path, "install", str(PACKAGE))
    (tmp_path / "mistakes.ts").write_text(MISTAKES)
    found = tsc(tmp_path, "mistakes.ts", "--module", "nodenext", "--noEmit").stdout.splitlines()
    assert [line.partition("(")[2].partition(",")[0] for line in found if line.startswith("mistakes.ts")] == [
        "6",
        "7",
        "8",
    ]


def a_clean_copy(place: Path) -> Path:
    """What a clone has: the committed files, and none of the development tools."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=PACKAGE,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (PACKAGE / name).exists():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(PACKAGE / name, place / name)
    return place


def tsc(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    types = ["--typeRoots", str(PACKAGE / "node_modules" / "@types"), "--types", "node"]
    return node(project, str(TYPESCRIPT), *arguments, "--strict", "--target", "es2022", *types)


def npm(directory: Path, *arguments: str) -> None:
    done = node(directory, str(NODE / "npm"), *arguments, "--offline", "--no-audit", "--no-fund")
    assert done.returncode == 0, done.stdout + done.stderr


def node(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    variables = {
        "HOME": str(directory),
        "PATH": f"{NODE}:{os.environ['PATH']}",
        "npm_config_cache": str(directory / ".npm"),
    }
    return subprocess.run(
        [str(NODE / "node"), *arguments],
        cwd=directory,
        env=variables,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
