"""The bill of materials of the vendored binaries (CycloneDX), without clock or random numbers so that it is reproducible."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from vendoring.pins import RECIPE

if TYPE_CHECKING:
    from collections.abc import Mapping

FILENAME = "vendored-toolchain.cdx.json"


def document(name: str, version: str, manifest: Mapping[str, Any]) -> str:
    product = f"pkg:pypi/{name}@{version}"
    components = [_component(component, manifest) for component in RECIPE.components]
    bom = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {"type": "library", "bom-ref": product, "name": name, "version": version, "purl": product}},
        "components": components,
        "dependencies": [
            {"ref": product, "dependsOn": [component["bom-ref"] for component in components]},
            *({"ref": component["bom-ref"]} for component in components),
        ],
    }
    return json.dumps(bom, indent=2, sort_keys=True) + "\n"


def _component(component: Mapping[str, str], manifest: Mapping[str, Any]) -> dict[str, Any]:
    wheel = RECIPE.wheel
    return {
        "type": "library",
        "bom-ref": component["purl"],
        "name": component["name"],
        "version": component["version"],
        "purl": component["purl"],
        "licenses": [{"expression": component["license"]}],
        "components": [_file(path, manifest["files"][path]["sha256"]) for path in component["files"].split()],
        "externalReferences": [
            {
                "type": "distribution",
                "url": f"pkg:pypi/{wheel.distribution}@{wheel.version}?file_name={wheel.filename}",
                "hashes": [{"alg": "SHA-256", "content": wheel.sha256}],
            }
        ],
    }


def _file(path: str, sha256: str) -> dict[str, Any]:
    return {"type": "file", "bom-ref": f"file:{path}", "name": path, "hashes": [{"alg": "SHA-256", "content": sha256}]}
