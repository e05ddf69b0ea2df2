"""The build hook of the wheel: stages the vendored toolchain and lets the binaries decide the wheel's tag. See packaging/README.md."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.config import BuilderConfig
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).parent / "packaging"))

from vendoring import policy, sbom, sources
from vendoring.errors import StagingError
from vendoring.stage import ensure, staged_manifest


class VendoredToolchainHook(BuildHookInterface[BuilderConfig]):
    def dependencies(self) -> list[str]:
        """pip joins the build environment only if it may have to fetch: a build without an index needs none."""
        self._or_abort(policy.refuse_other_hosts)
        return ["pip>=23"] if sources.needs_client() and staged_manifest(self._vendor) is None else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        manifest = self._or_abort(lambda: ensure(self._vendor))
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{manifest['platform']}"
        self._scratch = tempfile.TemporaryDirectory(prefix="numba-enzyme-")
        bill = Path(self._scratch.name) / sbom.FILENAME
        bill.write_text(sbom.document(self.metadata.name, self.metadata.version, manifest), encoding="utf-8")
        build_data["sbom_files"].append(str(bill))

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        self._scratch.cleanup()

    @property
    def _vendor(self) -> Path:
        return Path(self.root) / "src" / "numba_enzyme" / "_vendor"

    def _or_abort(self, step: Any) -> Any:
        try:
            return step()
        except StagingError as error:
            self.app.abort(str(error))
