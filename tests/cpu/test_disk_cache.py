"""Builds on disk: found by another process, never wrong, never in the way."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import textwrap
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from numba_enzyme import cache, grad, value_and_grad
from numba_enzyme.enzyme import run

KEY = "ab" * 32


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    path = tmp_path / "cache"
    monkeypatch.setenv("NUMBA_ENZYME_CACHE_DIR", str(path))
    return path


@pytest.fixture
def opt_runs(monkeypatch):
    """How often opt is run, as a list that grows."""
    runs = []
    real = run.differentiate

    def counted(*args, **kwargs):
        runs.append(args)
        return real(*args, **kwargs)

    monkeypatch.setattr(run, "differentiate", counted)
    return runs


def child(code, tmp_path, **environment):
    """Runs `code` from a file in a new process; what it prints."""
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(code))
    environment = {**os.environ, **environment}
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


COUNTED = """
    import warnings
    from numba_enzyme.enzyme import run
    runs = 0
    real = run.differentiate
    def counted(*args, **kwargs):
        global runs
        runs += 1
        return real(*args, **kwargs)
    run.differentiate = counted
    from numba_enzyme import grad, jvp
"""


def test_another_process_runs_no_opt(tmp_path):
    code = (
        COUNTED
        + """
    def f(x, y):
        return x * x * y
    print(grad(f)(3.0, 2.0), jvp(f)((3.0, 2.0), (1.0, 0.0)), runs)
    """
    )
    assert child(code, tmp_path) == "(12.0, 9.0) 12.0 2"
    assert child(code, tmp_path) == "(12.0, 9.0) 12.0 0"


def test_another_process_raises_what_f_raises(tmp_path):
    code = (
        COUNTED
        + """
    def f(x):
        if x < 0.0:
            raise ValueError("negative", 7)
        return x * x
    print(grad(f)(3.0))
    try:
        grad(f)(-1.0)
    except ValueError as error:
        print(error.args, runs)
    """
    )
    assert child(code, tmp_path) == "(6.0,)\n('negative', 7) 1"
    assert child(code, tmp_path) == "(6.0,)\n('negative', 7) 0"


def test_a_named_tuple_comes_back_as_its_own_class(tmp_path):
    code = (
        COUNTED
        + """
    from collections import namedtuple
    P = namedtuple("P", "a b")
    def f(p):
        return p.a * p.b
    print(grad(f)(P(2.0, 3.0)), runs)
    """
    )
    assert child(code, tmp_path) == "(P(a=3.0, b=2.0),) 1"
    assert child(code, tmp_path) == "(P(a=3.0, b=2.0),) 0"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("K = 2.0\ndef f(x): return K * x", "K = 5.0\ndef f(x): return K * x"),
        ("def f(x, k=2.0): return k * x", "def f(x, k=5.0): return k * x"),
        (
            "def make(k):\n    def f(x): return k * x\n    return f\nf = make(2.0)",
            "def make(k):\n    def f(x): return k * x\n    return f\nf = make(5.0)",
        ),
        (
            "from numba import njit\n@njit\ndef g(x): return 2.0 * x\ndef f(x): return g(x)",
            "from numba import njit\n@njit\ndef g(x): return 5.0 * x\ndef f(x): return g(x)",
        ),
        (
            "import numpy as np\nA = np.array([2.0, 1.0])\ndef f(x): return A[0] * x",
            "import numpy as np\nA = np.array([5.0, 1.0])\ndef f(x): return A[0] * x",
        ),
        (
            "from numba_enzyme import grad as d\ng = d(lambda x: x * x)\ndef f(x): return g(x)[0]",
            "from numba_enzyme import grad as d\ng = d(lambda x: 2.5 * x * x)\ndef f(x): return g(x)[0]",
        ),
        (
            "import types\nm = types.ModuleType('m'); m.K = 2.0\ndef f(x): return m.K * x",
            "import types\nm = types.ModuleType('m'); m.K = 5.0\ndef f(x): return m.K * x",
        ),
    ],
    ids=["global", "default", "closure", "callee", "array", "derivative", "module constant"],
)
def test_other_values_never_share(first, second, tmp_path):
    for text, expected in ((first, 2.0), (second, 5.0)) * 2:
        code = text + "\nfrom numba_enzyme import grad\nprint(grad(f, 0)(1.0))\n"
        assert float(child(code, tmp_path)) == expected


def test_an_edited_constant_module_is_seen(tmp_path):
    code = "import constants\nfrom numba_enzyme import grad\ndef f(x): return constants.K * x\nprint(grad(f, 0)(1.0))\n"
    for value in (2.0, 5.0):
        (tmp_path / "constants.py").write_text(f"K = {value}\n")
        assert float(child(code, tmp_path, PYTHONDONTWRITEBYTECODE="1")) == value


def square(x):
    return x * x


def test_a_truncated_entry_is_built_again(folder, opt_runs):
    for size in (0, 10, 47, 60, 500):
        grad(lambda x: x * x * x)(1.0)
        for entry in (folder / "builds").rglob("*"):
            if entry.is_file() and entry.suffix != ".lock":
                entry.write_bytes(entry.read_bytes()[:size])
        assert grad(lambda x: x * x * x)(2.0) == (12.0,)
    assert opt_runs


def test_a_flipped_bit_is_seen():
    cache.store(KEY, b"payload")
    path = cache._path(KEY)
    assert cache.load(KEY) == b"payload"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(bytes(content))
    assert cache.load(KEY) is None


def test_an_entry_under_another_key_is_not_loaded():
    cache.store(KEY, b"payload")
    other = "ab" + KEY[2:-1] + "c"
    cache._path(other).write_bytes(cache._path(KEY).read_bytes())
    assert cache.load(other) is None


def test_what_others_may_write_is_not_loaded(folder):
    cache.store(KEY, b"payload")
    path = cache._path(KEY)
    path.chmod(0o666)
    assert cache.load(KEY) is None
    path.chmod(0o600)
    assert cache.load(KEY) == b"payload"
    path.parent.chmod(0o777)
    assert cache.load(KEY) is None


def test_another_users_entry_is_not_loaded(monkeypatch):
    cache.store(KEY, b"payload")
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert cache.load(KEY) is None


def test_the_folder_is_its_owners(folder):
    cache.store(KEY, b"payload")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "builds").stat().st_mode) == 0o700


def test_the_least_recently_used_go_first(monkeypatch, folder):
    monkeypatch.setattr(cache, "MAX_BYTES", 3000)
    keys = [f"{n:02x}" * 31 + f"{n:x}1" for n in range(5)]
    for n, key in enumerate(keys):
        cache.store(key, bytes(1000))
        os.utime(cache._path(key), (n, n))
    os.utime(cache._path(keys[0]), (100, 100))  # used since
    cache._shrink(folder / "builds")
    assert [cache.load(key) is not None for key in keys] == [True, False, False, False, True]


def test_a_store_looks_at_the_size_now_and_then(monkeypatch):
    monkeypatch.setattr(cache, "MAX_BYTES", 0)
    cache.store("ab" * 31 + "a1", b"payload")
    assert cache.load("ab" * 31 + "a1") == b"payload"
    cache.store("ab" * 31 + "00", b"payload")
    assert cache.load("ab" * 31 + "a1") is None


def test_where_nothing_can_be_written_one_warning_says_so(monkeypatch, tmp_path, opt_runs):
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("NUMBA_ENZYME_CACHE_DIR", str(blocked / "below"))
    cache._warn_once.cache_clear()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert grad(lambda x: x * 3.0)(1.0) == (3.0,)
        assert grad(lambda x: x * 4.0)(1.0) == (4.0,)
    assert [w for w in caught if "NUMBA_ENZYME_CACHE_DIR" in str(w.message)].__len__() == 1
    assert len(opt_runs) == 2


def test_no_home_is_no_error(tmp_path):
    code = "from numba_enzyme import grad\nprint(grad(lambda x: x * x)(3.0))\n"
    script = tmp_path / "script.py"
    script.write_text(code)
    environment = {k: v for k, v in os.environ.items() if k not in ("HOME", "XDG_CACHE_HOME", "NUMBA_ENZYME_CACHE_DIR")}
    environment["HOME"] = "/nonexistent/home"
    done = subprocess.run([sys.executable, "-W", "ignore", str(script)], capture_output=True, text=True, env=environment, check=False)
    assert done.stdout.strip() == "(6.0,)", done.stderr


def test_many_cold_processes_all_get_the_right_answer(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("from numba_enzyme import grad\ndef f(x): return x * x * x\nprint(grad(f)(2.0))\n")
    children = [subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True) for _ in range(8)]
    assert {process.communicate()[0].strip() for process in children} == {"(12.0,)"}
    assert {process.returncode for process in children} == {0}


TOGETHER = """
    import multiprocessing
    from numba_enzyme import grad
    from numba_enzyme.enzyme import run

    def work(n, start, results):
        runs = []
        real = run.differentiate
        run.differentiate = lambda *args, **kwargs: runs.append(1) or real(*args, **kwargs)
        k = float(n % 4)
        def f(x):
            return k * x * x * x
        start.wait()
        results.put((n, grad(f)(2.0), len(runs)))

    # By fork, none has built anything, and all of them come to it at the same moment.
    context = multiprocessing.get_context("fork")
    start, results = context.Barrier(32), context.Queue()
    processes = [context.Process(target=work, args=(n, start, results)) for n in range(32)]
    for process in processes:
        process.start()
    found = sorted(results.get(timeout=120) for _ in processes)
    for process in processes:
        process.join()
    print([value for _, value, _ in found] == [(12.0 * (n % 4),) for n in range(32)], sum(runs for *_, runs in found))
    print({process.exitcode for process in processes})
"""


def test_32_cold_processes_share_the_builds_of_four_functions(tmp_path):
    assert child(TOGETHER, tmp_path).split("\n") == ["True 4", "{0}"]


def test_eight_cold_threads_share_one_build(opt_runs):
    def f(x, y):
        return x * y * y

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: value_and_grad(f)(2.0, 3.0), range(8)))
    assert results == [(18.0, (9.0, 12.0))] * 8
    assert len(opt_runs) == 1


def test_functions_that_mean_the_same_share_one_build(opt_runs):
    def make(k):
        def f(x):
            return k * x * x

        return f

    assert grad(make(2.0))(3.0) == grad(make(2.0))(3.0) == (12.0,)
    assert len(opt_runs) == 1


def test_what_holds_an_address_is_not_kept(folder, opt_runs):
    import numpy as np

    big = np.ones((300, 600))[:, ::2]  # Numba refers to it where it lies

    def f(x):
        return x * big[1, 1]

    assert grad(f)(3.0) == (1.0,)
    assert opt_runs
    assert not [path for path in Path(folder).rglob("*") if path.is_file() and path.suffix != ".lock" and "builds" in path.parts]
