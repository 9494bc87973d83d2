"""The demo: scikit-learn's breast cancer table, as if a clinic published it."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from schemas.home import Home


def lay_out(home: Home) -> Path:
    """Write the demo's table, contract and request into the home; returns the request's path."""
    from sklearn.datasets import load_breast_cancer

    folder = home.root / "demo"
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("contract.yaml", "request.yaml"):
        if not (folder / name).exists():  # else it may have been edited
            (folder / name).write_text(files(__name__).joinpath(name).read_text())
    table = folder / "table.csv"
    if not table.exists():
        load_breast_cancer(as_frame=True).data.to_csv(table, index=False)
    return folder / "request.yaml"
