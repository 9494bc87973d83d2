"""The page of two releases of one data set held against each other."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramercy.reports import figures
from gramercy.reports.change_summary import Compared, changed
from gramercy.reports.correlations import INSIDE
from gramercy.reports.page import render
from gramercy.reports.words import shown_name


def change_page(compared: Compared, title: str) -> str:
    """The page of two releases of a data set of this title."""
    return render("change.html", root="", title=title, changed=pictured_change(compared))


def pictured_change(compared: Compared) -> dict[str, Any]:
    """What a page says of two releases held against each other, with a picture."""
    away = compared.change.deviations
    names = [shown_name(name) for name in compared.names]
    picture = figures.changes(away, np.abs(away) <= INSIDE, names)
    return changed(compared) | {"picture": picture}
