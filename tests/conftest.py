import os
import tempfile


def pytest_configure(config):
    # A run starts from an empty disk cache: what an earlier run left would hide how a derivative is built.
    if "NUMBA_ENZYME_CACHE_DIR" not in os.environ:
        folder = tempfile.TemporaryDirectory(prefix="numba-enzyme-tests-")
        os.environ["NUMBA_ENZYME_CACHE_DIR"] = folder.name
        config.add_cleanup(lambda: (os.environ.pop("NUMBA_ENZYME_CACHE_DIR"), folder.cleanup()))
