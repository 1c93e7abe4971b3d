"""Kernels without a cache on disk: a read-only installation, no home."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src" / "rejoinder"
MODULES = ["alignment", "meteor", "ngrams", "resampling", "ribes", "tokens"]


def test_kernels_work_without_a_cache_folder(tmp_path: Path) -> None:
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(SOURCE, tmp_path / "rejoinder", ignore=ignore)
    nowhere = tmp_path / "file"
    nowhere.write_text("not a folder, so that no folder can be made inside, not even by root")
    for folder in [tmp_path / "rejoinder", *(tmp_path / "rejoinder").rglob("*")]:
        if folder.is_dir():
            (folder / "__pycache__").write_text("not a folder either")
    env = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    for name in ("HOME", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR"):
        env[name] = str(nowhere / "x")
    program = (
        "import importlib, rejoinder\n"
        f"assert rejoinder.__file__.startswith({str(tmp_path)!r})\n"
        f"for name in {MODULES}:\n    importlib.import_module('rejoinder.kernels.' + name)\n"
        "print(rejoinder.score_one('rouge-l(tok=whitespace)', 'a b', ['a b']))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=env, check=False
    )
    assert (done.returncode, done.stdout) == (0, "1.0\n"), done.stderr
