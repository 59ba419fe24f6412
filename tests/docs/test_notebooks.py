"""The notebooks run from the first cell to the last, with short searches."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
@pytest.mark.filterwarnings("default")  # those of the notebook's own machinery
def test_it_runs(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROWS", "600")
    monkeypatch.setenv("STEPS", "2e5")
    monkeypatch.setenv("PYDEVD_DISABLE_FILE_VALIDATION", "1")
    notebook = nbformat.read(file, as_version=4)
    client = NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(ROOT)}}
    )
    client.execute()
    shown = [set(output.get("data", {})) for cell in notebook.cells for output in cell.get("outputs", [])]
    assert any("text/html" in kinds for kinds in shown)
    assert any("image/png" in kinds for kinds in shown)


def test_notebooks_hold_no_outputs() -> None:
    """What they show comes from running them."""
    for file in NOTEBOOKS:
        notebook = nbformat.read(file, as_version=4)
        nbformat.validate(notebook)
        assert not any(cell.get("outputs") or cell.get("execution_count") for cell in notebook.cells)
