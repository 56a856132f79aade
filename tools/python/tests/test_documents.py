"""The code of the documents runs."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

NEEDED = ("sklearn", "pandas", "matplotlib")


def require(*modules):
    """Skips where a module is missing, unless readers of all kinds are required."""
    for module in modules:
        if os.environ.get("TRITGRAD_READERS") == "required":
            __import__(module)
        else:
            pytest.importorskip(module)


def environment(**others):
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **others}


def code_of(page):
    return "\n".join(re.findall(r"```python\n(.*?)```", page.read_text(), re.S))


def test_the_page_runs(root, tmp_path):
    require(*NEEDED)
    done = subprocess.run(
        [sys.executable, "-c", code_of(root / "docs/PYTHON.md")],
        env=environment(MPLBACKEND="Agg"), cwd=tmp_path, capture_output=True, text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("True\n") and (tmp_path / "digits.h").exists()


README_BEGINS = """
from sklearn.datasets import load_iris
from sklearn.model_selection import train_test_split

X, y = load_iris(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0, stratify=y)
"""


def test_the_code_of_readme_runs(root, tmp_path):
    require("sklearn")
    done = subprocess.run(
        [sys.executable, "-c", README_BEGINS + code_of(root / "README.md")],
        env=environment(), cwd=tmp_path, capture_output=True, text=True,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "model.h").exists()


def test_the_language_model_of_the_page_runs(root, tmp_path):
    section = (root / "docs/PYTHON.md").read_text().split("## Language models\n")[1].split("\n## ")[0]
    code = "\n".join(line[4:] for line in section.splitlines() if line.startswith("    "))
    for long, short in (('"sotu"', '"text:words.txt"'), ('"epochs": 10', '"epochs": 1'),
                        ('"epoch_tokens": 50000', '"epoch_tokens": 500'), ("length=200", "length=5")):
        assert long in code
        code = code.replace(long, short)
    shutil.copyfile(root / "LICENSE", tmp_path / "words.txt")
    done = subprocess.run(
        [sys.executable, "-c", "import tritgrad\n" + code],
        env=environment(), cwd=tmp_path, capture_output=True, text=True,
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout.split("\n")[0]) > 0


def test_the_notebook_has_the_code_of_the_page_and_no_outputs(root):
    cells = json.loads((root / "docs/python.ipynb").read_text())["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    for block in re.findall(r"```python\n(.*?)```", (root / "docs/PYTHON.md").read_text(), re.S):
        assert block.strip() in code
    for cell in cells:
        assert not cell.get("outputs") and cell.get("execution_count") is None


def test_the_notebook_runs(root, tmp_path):
    require("nbconvert", "ipykernel", *NEEDED)
    notebook = tmp_path / "python.ipynb"  # its kernel works in its folder
    shutil.copyfile(root / "docs/python.ipynb", notebook)
    command = [sys.executable, "-m", "nbconvert", "--to", "notebook", "--execute", "--output",
               "executed", notebook]
    done = subprocess.run(command, env=environment(), cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    outputs = (tmp_path / "executed.ipynb").read_text()
    assert "<caption>" in outputs and "image/png" in outputs
