"""The bill of materials of the vendored binaries (CycloneDX), without clock or random numbers so that it is reproducible."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from vendoring import sources

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vendoring.pins import Built, Restaged

FILENAME = "vendored-toolchain.cdx.json"


def document(name: str, version: str, manifest: Mapping[str, Any]) -> str:
    product = f"pkg:pypi/{name}@{version}"
    recipe = sources.RECIPES[manifest["origin"]["kind"]]
    components = [_component(recipe, component, manifest) for component in recipe.components]
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


def _component(recipe: Built | Restaged, component: Mapping[str, str], manifest: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "library",
        "bom-ref": component["purl"],
        "name": component["name"],
        "version": component["version"],
        "purl": component["purl"],
        "licenses": [{"expression": component["license"]}],
        "components": [_file(path, manifest["files"][path]["sha256"]) for path in component["files"].split()],
        "externalReferences": [
            {"type": "distribution", "url": given["url"], "hashes": [{"alg": "SHA-256", "content": given["sha256"]}]}
            for given in sources.inputs(recipe, component)
        ],
    }


def _file(path: str, sha256: str) -> dict[str, Any]:
    return {"type": "file", "bom-ref": f"file:{path}", "name": path, "hashes": [{"alg": "SHA-256", "content": sha256}]}
