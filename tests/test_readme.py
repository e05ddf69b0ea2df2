"""The code of the README and of the pages beside it runs, in the order in which it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize(("page", "least"), [("README.md", 6), ("docs/arrays.md", 2)])
def test_a_page_runs(page, least, tmp_path):
    blocks = re.findall(r"^```python\n(.*?)^```$", (ROOT / page).read_text(), flags=re.DOTALL | re.MULTILINE)
    assert len(blocks) >= least
    script = tmp_path / "readme.py"
    # In one file: a derivative is compiled from functions whose source Numba reads.
    script.write_text("\n".join(blocks))
    exec(compile(script.read_text(), str(script), "exec"), {"__name__": "readme"})


def test_a_wrong_assertion_in_it_would_fail():
    broken = "from numba_enzyme import grad\nassert grad(lambda x: x * x)(3.0) == (7.0,)"
    try:
        exec(broken, {"__name__": "readme"})
    except AssertionError:
        return
    raise AssertionError("the assertions of the README are not looked at")
