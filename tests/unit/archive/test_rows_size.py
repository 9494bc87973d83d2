"""Published rows of a hostile archive: a huge file is not read to its end."""

from __future__ import annotations

from pathlib import Path

from gramercy.archive.bundles.bundle_kinds import read_release
from gramercy.pipeline.context import Context
from gramercy.schemas import families
from tests.support.factories import MECHANISM, run_release, write_request
from tests.support.problems import raises


def test_file_that_is_larger_than_the_stated_rows_is_not_hashed(tmp_path: Path) -> None:
    release = run_release(
        write_request(tmp_path, request={"mechanism": MECHANISM | {"name": "rows"}})
    )
    folder = Context.default().archive.release("toy", release)
    path = folder / "rows.parquet"
    path.chmod(0o644)
    with path.open("r+b") as stream:
        stream.truncate(1 << 43)  # sparse: reading it would take hours
    with raises(families.SEAL, path=str(path)):
        read_release(folder)
