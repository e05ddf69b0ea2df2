#!/usr/bin/env bash
# Whatever is shown to readers as code runs: README, docstrings, examples, docs.
set -euo pipefail
cd "$(dirname "$0")/../.."
python -m pip install --quiet -e '.[test,cuda]'
python -m pytest tests/test_readme.py tests/test_docstrings.py tests/test_examples.py tests/test_public_names.py tests/cuda/test_readme.py
