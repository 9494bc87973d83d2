"""Write the pages of the catalogue that a release changes, as a task."""

from __future__ import annotations

from gramercy.application import catalogue_pages as steps
from gramercy.tasks.policy import private_task

catalogue = private_task(steps.catalogue)
