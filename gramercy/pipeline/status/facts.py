"""The state of a home and its service: one fact a line, each with a verdict.

Only public facts: what pages of the catalogue, the ledger and the run history state as well.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import math
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any

from gramercy.archive.seal.signing import STEWARD, key_id, signing_public_key
from gramercy.ledger import Charge, Ledger, Statement
from gramercy.pipeline.context import Context, verify_ledger_anchor
from gramercy.pipeline.status.scheduled_runs import AHEAD, LONGEST, Answer, Service
from gramercy.schemas.errors import GramercyError
from gramercy.schemas.ledger_history import ChargeState
from gramercy.schemas.periods import label_of

_LEAST_FREE = 10**9  # bytes
_AUDITED_WITHIN = datetime.timedelta(days=14)
# One to three years for a private signature key: NIST SP 800-57 part 1 (2020), table 1.
_KEY_LASTS = datetime.timedelta(days=3 * 365)

# What a fact measures, as Prometheus shows it: the unit is the end of the name.
MEASURES = MappingProxyType(
    {
        "last_release_timestamp_seconds": "Time of the last published release.",
        "next_release_timestamp_seconds": "Time for which the next release is scheduled.",
        "budget_spent_ratio": "Share of the budget that is spent, from 0 to 1.",
        "budget_releases_left": "Releases like the last one that the budget still admits.",
        "last_audit_timestamp_seconds": "Time of the last audit.",
        "audit_discrepancies": "Discrepancies that the last audit found.",
        "ledger_entries": "Entries of the ledger.",
        "witness_entry": "Entry of the ledger that the newest anchor of the witness states.",
        "workers_online": "Workers of the work pool that the Prefect server has heard of lately.",
        "disk_free_bytes": "Free space on the disk of the home.",
        "key_timestamp_seconds": "Time when the signing key was made.",
    }
)


@dataclass(frozen=True)
class Fact:
    """One line of a status.

    Parameters
    ----------
    subject, dataset
        What it is about; the data set is empty if it is not about one.
    text
        The state in words.
    well
        False if a person should do something.
    measures
        Numbers, by their names in `MEASURES`.
    """

    subject: str
    text: str
    well: bool = True
    dataset: str = ""
    measures: Mapping[str, float] = field(default_factory=dict)

    def facts(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "subject": self.subject,
            "dataset": self.dataset or None,
            "well": self.well,
            "text": self.text,
            **self.measures,
        }


def status(context: Context, now: datetime.datetime) -> list[Fact]:
    """All facts of a home, quickly: neither a table nor a bundle is read."""
    service = Service.of(context.home)
    answer = None if service is None else service.ask(now)
    facts = _checked("ledger", partial(_ledger, context))
    with contextlib.suppress(GramercyError):  # reported above
        if (ledger := context.existing_ledger) is not None:
            facts += _checked("release", partial(_datasets, ledger, service, answer, now))
            facts += _checked("witness", partial(_witness, context, ledger))
    facts += _checked("audit", partial(_audit, context, service, answer, now))
    facts += _checked("worker", partial(_worker, service, answer))
    facts += _checked("disk", partial(_disk, context))
    facts += _checked("key", partial(_key, context, now))
    return facts


def _checked(subject: str, lines: Callable[[], Iterator[Fact]]) -> list[Fact]:
    """The facts that a function gives; an error is one of them, and the others are still shown."""
    found: list[Fact] = []
    try:
        for each in lines():
            found.append(each)
    except GramercyError as error:
        found.append(Fact(subject, str(error), well=False))
    except (KeyError, TypeError, ValueError):  # a file or a database that somebody else wrote
        found.append(Fact(subject, "unreadable; see 'gramercy audit'", well=False))
    return found


def _ledger(context: Context) -> Iterator[Fact]:
    """Whether the ledger would charge: its anchors, and its location."""
    if (ledger := context.existing_ledger) is None:
        yield Fact("ledger", "none yet; the first release creates it")
        return
    head = ledger.head()
    if ledger.original_location() is not None:
        text = "this is a copy, which does not charge; see 'gramercy budget --moved'"
        yield Fact("ledger", text, well=False)
        return
    verify_ledger_anchor(ledger, context.archive)
    text = f"entry {head.seq}, agrees with the anchor in the archive"
    yield Fact("ledger", text, measures={"ledger_entries": head.seq})


def _witness(context: Context, ledger: Ledger) -> Iterator[Fact]:
    if context.witness is None:
        text = "none is set: a ledger and an archive restored from the same day pass as new"
        yield Fact("witness", text)
        return
    newest = context.witness.newest()
    ledger.verify_anchor(newest, context.witness.location)
    entry = 0 if newest is None else newest.seq
    text = f"the ledger agrees with the anchor of entry {entry} at {context.witness.location}"
    yield Fact("witness", text, measures={"witness_entry": entry})


def _datasets(
    ledger: Ledger, service: Service | None, answer: Answer | None, now: datetime.datetime
) -> Iterator[Fact]:
    """Two lines for each data set that is registered or scheduled."""
    accounts = ledger.accounts()
    scheduled = {**(service.schedules if service else {}), **(answer.due if answer else {})}
    for name in sorted({*accounts, *scheduled} - {""}):
        charges = ledger.charges(name) if name in accounts else ()
        due = [each for each in answer.due.get(name, ()) if each < now + AHEAD] if answer else ()
        yield _release(name, charges, service, answer, now)
        if charges:
            of_period = accounts[name].statements
            statement = next(each for each in of_period if each.window == charges[-1].window)
            yield _budget(name, statement, charges[-1], due)


def _release(
    name: str,
    charges: Sequence[Charge],
    service: Service | None,
    answer: Answer | None,
    now: datetime.datetime,
) -> Fact:
    """The last and the next release, and what prevents one."""
    published = [each for each in charges if each.is_published]
    last = published[-1] if published else None
    measures, parts, well = dict[str, float](), ["no release yet"], True
    if last is not None:
        at = _time(last)
        parts = [f"last {last.release} on {_day(at)}"]
        measures["last_release_timestamp_seconds"] = at.timestamp()
    newest = charges[-1] if charges else None
    if newest is not None and newest.state is ChargeState.SPENT:
        parts.append(f"the charge of {newest.release} is spent without a release")
        well = False
    elif newest is not None and newest.state.is_unfinished and now - _time(newest) > LONGEST:
        parts.append(f"{newest.release} was charged and interrupted; repeat its request")
        well = False
    trouble, since = answer.troubles.get(("release", name), ("", now)) if answer else ("", now)
    if trouble and not (last and _time(last) > since):
        parts.append(f"the run of {_minute(since)} {trouble}")
        well = False
    if answer and (missed := answer.missed(name, _time(newest) if newest else None, now)):
        parts.append(f"none for {_minute(missed)}, when one was due: request it by hand")
        well = False
    if answer and (due := answer.due.get(name, ())):
        parts.append(f"next on {_minute(due[0])}")
        measures["next_release_timestamp_seconds"] = due[0].timestamp()
    elif service and name in service.schedules:
        reason = "no Prefect server answers" if answer is None else "no run is planned"
        parts.append(f"scheduled at {service.schedules[name]}, but {reason}")
        well = False
    return Fact("release", "; ".join(parts), well, name, measures)


def _budget(
    name: str, statement: Statement, last: Charge, due: Sequence[datetime.datetime]
) -> Fact:
    """What is spent, and whether the rest admits the releases of the next 30 days.

    Of a budget per period, those that are due within the period of the last release count.
    """
    budget, window = statement.budget, statement.window
    if budget.per != "lifetime":
        due = [each for each in due if label_of(budget.per, each.date()) == window]
    left = statement.charges_left(last.guarantee)
    well = left >= len(due)
    text = f"epsilon={statement.spent:.4g} of {budget.epsilon:g} spent"
    text += f" in {window}" if window else ""
    measures: dict[str, float] = {"budget_spent_ratio": statement.share}
    if last.whole is None:  # otherwise the charge of its series includes the next ones, too
        text += f"; {left} more like {last.release}"
        text += "" if well else f", and {len(due)} are due within 30 days"
        measures["budget_releases_left"] = left
    return Fact("budget", text, well, name, measures)


def _audit(
    context: Context, service: Service | None, answer: Answer | None, now: datetime.datetime
) -> Iterator[Fact]:
    """The newest audit in the home, and its discrepancies."""
    trouble, since = answer.troubles.get(("audit", ""), ("", now)) if answer else ("", now)
    found: Mapping[str, Any] | None = None
    for page in sorted(context.home.audits.glob("*/audit.json"), reverse=True):
        with contextlib.suppress(OSError, ValueError):
            found = json.loads(page.read_text(encoding="utf-8"))
            break
    if found is None:
        text = f"the run of {_minute(since)} {trouble}" if trouble else "none yet"
        yield Fact("audit", text, well=not trouble)
        return
    at = datetime.datetime.fromisoformat(found["at"])
    count = len(found["discrepancies"])
    text, well = f"on {_day(at)}: {count or 'no'} discrepancies", not count
    if service is not None and now - at > _AUDITED_WITHIN:
        text, well = f"{text}; none for {(now - at).days} days", False
    if trouble and since > at:
        text, well = f"{text}; the run of {_minute(since)} {trouble}", False
    measures = {"last_audit_timestamp_seconds": at.timestamp(), "audit_discrepancies": count}
    yield Fact("audit", text, well, measures=measures)


def _worker(service: Service | None, answer: Answer | None) -> Iterator[Fact]:
    if service is None:
        yield Fact("worker", "nothing is scheduled; see 'gramercy serve'")
    elif answer is None:
        yield Fact("worker", "the Prefect server does not answer", well=False)
    else:
        text = f"{answer.workers or 'none'} online in the work pool {service.pool}"
        online = {"workers_online": answer.workers}
        yield Fact("worker", text, well=answer.workers > 0, measures=online)


def _disk(context: Context) -> Iterator[Fact]:
    root = context.home.root
    existing = next(each for each in (root, *root.parents) if each.exists())
    free = shutil.disk_usage(existing).free
    text = f"{free / 10**9:.3g} GB free"
    yield Fact("disk", text, free >= _LEAST_FREE, measures={"disk_free_bytes": free})


def _key(context: Context, now: datetime.datetime) -> Iterator[Fact]:
    public = signing_public_key(context.home.keys)
    if public is None:
        yield Fact("key", "none yet; the first release creates it")
        return
    written = (context.home.keys / STEWARD).stat().st_mtime
    made = datetime.datetime.fromtimestamp(written, datetime.UTC)
    until = made + _KEY_LASTS
    text = f"{key_id(public)} signs since {_day(made)}; 'gramercy keys new' is due by {_day(until)}"
    measures = {"key_timestamp_seconds": written}
    yield Fact("key", text, now < until - AHEAD, measures=measures)


def _time(charge: Charge) -> datetime.datetime:
    return datetime.datetime.fromisoformat(charge.at)


def _day(at: datetime.datetime) -> str:
    return f"{at.astimezone(datetime.UTC):%Y-%m-%d}"


def _minute(at: datetime.datetime) -> str:
    return f"{at.astimezone(datetime.UTC):%Y-%m-%d %H:%M} UTC"


def metrics(facts: Sequence[Fact], now: datetime.datetime) -> str:
    """Facts in the text format of Prometheus; a stale file shows by its time stamp.

    One number for each subject and data set: 1 if it is well, 0 if it needs a person.
    """
    helps = {"well": "Whether this is well (1) or needs a person (0)."} | MEASURES
    values: dict[str, list[tuple[Mapping[str, str], float]]] = {name: [] for name in helps}
    for each in facts:
        label = {"dataset": each.dataset} if each.dataset else {}
        values["well"].append(({"subject": each.subject, **label}, int(each.well)))
        for name, value in each.measures.items():
            values[name].append((label, value))
    helps |= {"status_timestamp_seconds": "Time of this file."}
    values["status_timestamp_seconds"] = [({}, now.timestamp())]
    lines = []
    for name, samples in values.items():
        if samples:
            lines += [f"# HELP gramercy_{name} {helps[name]}", f"# TYPE gramercy_{name} gauge"]
        for labels, value in samples:
            inner = ",".join(f"{key}={_quoted(text)}" for key, text in labels.items())
            number = repr(float(value)) if math.isfinite(value) else "+Inf"
            lines.append(f"gramercy_{name}{'{' + inner + '}' if inner else ''} {number}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """A label's value, as the format escapes it."""
    escaped = text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    return f'"{escaped}"'
