"""The steps of a cumulative series, replayed on a table that changes, at one published history.

A table may be another one at every reading: rows come late, are corrected or deleted. Two courses
of a table are compared as two tables are in `tests.support.black_box.chain`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gramercy.archive.bundles.encoded_file import Encoded
from gramercy.pipeline.plan.calibration import calibrate
from gramercy.pipeline.plan.planning import Plan
from gramercy.pipeline.publish.drawing import draw_into
from gramercy.pipeline.publish.private_table import PrivateSums, accumulate
from gramercy.schemas.manifest import ReleaseManifest
from tests.support.black_box.chain import History, Replayed, recorded
from tests.support.factories import as_flow_step


def replay_series(
    plans: Sequence[Plan], tables: Sequence[str], folder: Path, history: History = ()
) -> Replayed:
    """Draw steps of a series in order, with the pipeline's own reading, encoding and decoding.

    Parameters
    ----------
    plans
        The plan of every draw; a step that is drawn again has two.
    tables
        The text of the table at every draw.
    folder
        An empty folder.
    history
        What to publish in each draw; where it ends, the noise of a tape.
    """
    replayed, published = Replayed(), dict[int, tuple[Encoded, ...]]()
    draws = dict[int, int]()

    def encoded(_: Path, manifest: ReleaseManifest, parts: Sequence[Encoded]) -> None:
        assert manifest.cumulative is not None
        published[manifest.cumulative.step] = tuple(parts)

    def written(_: Path, manifest: ReleaseManifest, *results: Any) -> None:
        rows = [manifest.rows.value, *(each.rows.value for each in manifest.groups)]
        arrays = [each.tobytes() for each in results if hasattr(each, "tobytes")]
        replayed.published += [manifest.columns, manifest.normalisation, rows, arrays]

    with recorded(replayed, history), pytest.MonkeyPatch.context() as patch:
        patch.setattr("gramercy.pipeline.publish.drawing.write_encoded", encoded)
        patch.setattr("gramercy.pipeline.publish.drawing.write_matrices", written)
        for plan, table in zip(plans, tables, strict=True):
            Path(plan.contract.source).write_text(table)
            facts = plan.spec.cumulative
            data = as_flow_step(accumulate)(plan)
            assert facts is not None
            assert isinstance(data, PrivateSums)
            draws[facts.step] = draws.get(facts.step, 0) + 1
            rows = np.array([part.rows for part in data.sums.part_sums]).reshape(-1, facts.step)
            update = {
                "draws": tuple(draws[t] for t in range(1, facts.step + 1)),
                "rows": tuple(rows.sum(axis=0).tolist())
                if plan.spec.neighbours.count_is_public
                else (),
            }
            spec = plan.spec.model_copy(update={"cumulative": facts.model_copy(update=update)})
            stated = replace(
                plan,
                spec=spec,
                calibration=calibrate(spec),
                earlier=tuple(published[t] for t in range(1, facts.step)),
            )
            draw_into(folder, stated, data, f"r{len(replayed.draws)}")
            replayed.published.append(stated.guarantee)
    return replayed
