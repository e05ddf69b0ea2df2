"""Checks the bills of materials of wheels against the schema of CycloneDX: python packaging/ci/validate_sbom.py dist/*.whl"""

from __future__ import annotations

import sys
import zipfile

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator


def main(paths: list[str]) -> int:
    wrong = False
    for path in paths:
        with zipfile.ZipFile(path) as wheel:
            bills = {name: wheel.read(name).decode() for name in wheel.namelist() if ".dist-info/sboms/" in name}
        errors = {name: JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) for name, text in bills.items()}
        wrong |= not bills or any(errors.values())
        print(*(f"{name}: {error or 'valid'}" for name, error in errors.items()), sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
