"""Python imports this by itself in a process that finds it on its path: named modules are loaded with changed source.

`CHAOS_SOURCE_CHANGES` names a file with `{module: [[old, new], …]}`. An old piece that is not there exactly once ends
the process: a mutation that changes nothing would prove nothing.
"""

import importlib.abc
import importlib.machinery
import json
import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType


class ChangedLoader(SourceFileLoader):
    """Compiles the changed text each time: the cached bytecode is that of the unchanged one."""

    def __init__(self, fullname: str, path: str, changes: Sequence[Sequence[str]]) -> None:
        super().__init__(fullname, path)
        self._changes = changes

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        source = Path(path).read_text()
        for old, new in self._changes:
            if source.count(old) != 1:
                raise ImportError(f"{fullname} has {source.count(old)} times {old!r}, and is to be changed there")
            source = source.replace(old, new)
        return compile(source, path, "exec", dont_inherit=True)


class ChangedModules(importlib.abc.MetaPathFinder):
    def __init__(self, changes: dict[str, list[list[str]]]) -> None:
        self._changes = changes

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in self._changes:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        assert spec is not None
        assert spec.origin is not None
        spec.loader = ChangedLoader(fullname, spec.origin, self._changes[fullname])
        return spec


if "CHAOS_SOURCE_CHANGES" in os.environ:
    sys.meta_path.insert(0, ChangedModules(json.loads(Path(os.environ["CHAOS_SOURCE_CHANGES"]).read_text())))
