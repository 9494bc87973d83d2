"""The demo: scikit-learn's breast cancer table, as if a clinic published it."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from gramercy.common.home import Home


def write_demo_files(home: Home) -> Path:
    """Write the demo's table, contract and request into the home; returns the request's path."""
    from sklearn.datasets import load_breast_cancer

    folder = home.root / "demo"
    request, contract = folder / "request.yaml", home.contracts / "breast-cancer.yaml"
    for path, name in ((request, "request.yaml"), (contract, "contract.yaml")):
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():  # keep a file that the user may have edited
            path.write_text(files(__name__).joinpath(name).read_text())
    table = folder / "table.csv"
    if not table.exists():
        load_breast_cancer(as_frame=True).data.to_csv(table, index=False)
    return request
