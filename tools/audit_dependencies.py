"""Look for known vulnerabilities in the pinned versions, with pip-audit.

Run by ``make check`` and ``make dist``. It fails if an advisory names a pinned version. If no
advisories are available, as on a machine without network, it says so; with ``--required`` it fails.
"""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
LOCKS = ("requirements.lock", "requirements-tools.lock")
# Advisories that do not apply to how Gramercy uses a package, each with its reason.
ACCEPTED: dict[str, str] = {}
_SECONDS = 180  # of all requests


def audit(lock: Path) -> list[dict[str, Any]]:
    """What is known of each pinned version; empty if there was no answer, and says why.

    An entry has ``vulns``, or a ``skip_reason`` if the service does not know the version.
    """
    accepted = [word for name in ACCEPTED for word in ("--ignore-vuln", name)]
    command = [
        *(sys.executable, "-m", "pip_audit", "--disable-pip", "--require-hashes"),
        *("--format", "json"),
        *("--progress-spinner", "off", "--timeout", "10", *accepted),
        *("--requirement", str(lock)),
    ]
    try:
        done = subprocess.run(  # noqa: S603  the words above
            command, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        print(f"{lock.name}: no answer within {_SECONDS} seconds.")
        return []
    try:
        return list(json.loads(done.stdout)["dependencies"])
    except (ValueError, KeyError):
        reason = (done.stderr.strip().splitlines() or ["no output"])[-1]
        print(f"{lock.name}: {reason}")
        return []


def findings(facts: list[dict[str, Any]]) -> list[str]:
    """One line per advisory that names a pinned version."""
    return [
        f"{each['name']} {each['version']}: {advisory['id']}, fixed in "
        f"{', '.join(advisory['fix_versions']) or 'no version yet'}"
        for each in facts
        for advisory in each.get("vulns", ())
    ]


def main(*, required: bool) -> int:
    """Audit the lock files; returns the exit code."""
    with ThreadPoolExecutor() as threads:  # the locks may pin two versions of one package
        facts = [each for part in threads.map(audit, [ROOT / n for n in LOCKS]) for each in part]
    known = [each for each in facts if "skip_reason" not in each]
    found = findings(facts)
    for line in found:
        print(line)
    print(f"{len(known)} of {len(facts)} pinned versions audited, {len(found)} advisories.")
    if not known:
        print("NOT AUDITED: no advisories are available.")
    missing = not known or len(known) < len(facts)
    return 1 if found or (required and missing) else 0


if __name__ == "__main__":
    sys.exit(main(required="--required" in sys.argv[1:]))
