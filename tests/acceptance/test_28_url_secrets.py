"""User, password and query of a URL never leak, regardless of which step fails."""

from __future__ import annotations

import base64
import gzip
import http.server
import io
import logging
import threading
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pandas as pd
import pytest

import gramercy
from gramercy.common.home import Home
from gramercy.ledger import Ledger
from gramercy.pipeline.plan.request_files import read_request
from gramercy.schemas import families
from gramercy.schemas.errors import ContractError, GramercyError, RequestError
from gramercy.schemas.request_parts import DaskEngine
from gramercy.schemas.url import has_secrets, without_secrets
from gramercy.tables.formats.csv_format import CsvTables
from gramercy.tables.formats.parquet_format import ParquetTables
from gramercy.tables.formats.reader import column_types
from gramercy.tables.formats.registry import format_of
from gramercy.tables.formats.source import Source, open_source, source_file
from gramercy.tables.sums.cluster import _connect
from tests.acceptance.test_11_leaks import stored_contents
from tests.support.factories import FULL, read_registered, run_command, run_release, write_request
from tests.support.problems import raises

USER, PASSWORD, TOKEN, ANCHOR = "canaryuser", "pass@canary/word", "tokencanary=9", "fragmentcanary"
LOGIN = "canaryuser:pass%40canary%2Fword"
QUERY = "sig=tokencanary%3D9"
NEEDLES = [
    each.encode()
    for each in (
        *(USER, "pass@canary", "pass%40canary", "canary/word", "canary%2Fword", "canaryword"),
        *("tokencanary", ANCHOR, "canarykey", "canarysecret"),
        base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode().rstrip("="),
    )
]
REDUCED = slice(None) if FULL else slice(None, None, 4)
IN_A_COMMAND = slice(None) if FULL else slice(None, None, 7)
IN_A_RUN = slice(None) if FULL else slice(3, None, 7)


def leaks(content: bytes | str) -> list[bytes]:
    """The secrets in a text."""
    encoded = content.encode() if isinstance(content, str) else content
    return [needle for needle in NEEDLES if needle in encoded]


class Tables(http.server.BaseHTTPRequestHandler):
    """A server of tables that requires user, password and query, and fails on request."""

    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        url = urlsplit(self.path)
        login = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        authorised = self.headers["Authorization"] == f"Basic {login}"
        authorised = authorised and parse_qs(url.query) == {"sig": [TOKEN]}
        name = url.path.rpartition("/")[2]
        status = int(name.partition(".")[0]) if name[:3].isdigit() else 200 if authorised else 401
        content = self.server.files.get(name)  # type: ignore[attr-defined]
        if content is None and status == 200:
            status = 404
        if name == "cut.csv" and self.command == "GET":
            self.close_connection = True
            return
        content = content if status == 200 and content is not None else b""
        first, last = 0, len(content) - 1
        if status == 200 and (part := self.headers["Range"]):
            start, _, end = part.removeprefix("bytes=").partition("-")
            first, last = int(start), min(int(end or last), last)
            status = 206
        self.send_response(status)
        self.send_header("Last-Modified", "Sun, 22 Nov 2026 20:00:00 GMT")
        if status == 206:
            self.send_header("Content-Range", f"bytes {first}-{last}/{len(content)}")
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(last - first + 1))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content[first : last + 1])

    def log_message(self, *_: object) -> None:
        """Do not log: the log would contain the query."""


def parquet(frame: pd.DataFrame) -> bytes:
    stream = io.BytesIO()
    frame.to_parquet(stream)
    return stream.getvalue()


@pytest.fixture(scope="module")
def host() -> Iterator[str]:
    """Host and port of a server with valid and invalid tables."""
    values = np.random.default_rng(7).normal(size=(40, 3))
    frame = pd.DataFrame(values, columns=["c0", "c1", "c2"])
    text = frame.to_csv(index=False).encode()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Tables)
    server.daemon_threads = True
    server.files = {  # type: ignore[attr-defined]
        "table.csv": text,
        "table.csv.gz": gzip.compress(text),
        "table.parquet": parquet(frame),
        "cut.csv": text,
        "table.xlsx": text,
        "table": text,
        "lacks.csv": text.replace(b"c2", b"cx", 1),
        "double.csv": text.replace(b"c2", b"c1", 1),
        "empty.csv": b"",
        "no.parquet": text,
        "lacks.parquet": parquet(frame[["c0", "c1"]]),
        "text.parquet": parquet(frame.astype(str)),
        "short.csv": text[: len(text) // 2],
        "utf16.csv": text.decode().encode("utf-16"),
        "no.csv.gz": b"\x1f\x8b no gzip",
    }
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def sources(host: str) -> dict[str, str]:
    """Unusable sources, by their fault."""

    def at(name: str, place: str = host, scheme: str = "http", login: str = LOGIN) -> str:
        return f"{scheme}://{login}@{place}/{name}?{QUERY}"

    return {
        "unknown host": at("table.csv", "nothing.invalid"),
        "closed port": at("table.csv", "127.0.0.1:1"),
        "not found": at("404.csv"),
        "missing column": at("lacks.csv"),
        "forbidden": at("403.csv"),
        "another user": at("table.csv", login="canaryuser:canaryword"),
        "server error": at("500.csv"),
        "wrong number of rows": at("short.csv"),
        "cut off": at("cut.csv"),
        "wrong type": at("table.xlsx"),
        "no type": at("table"),
        "key and secret": f"s3://canarykey:canarysecret@bucket/table.csv?{QUERY}",
        "same name twice": at("double.csv"),
        "empty": at("empty.csv"),
        "not Parquet": at("no.parquet"),
        "unknown protocol": at("table.csv", scheme="nowhere"),
        "Parquet, missing column": at("lacks.parquet"),
        "Parquet, text": at("text.parquet"),
        "UTF-16": at("utf16.csv"),
        "missing driver": at("table.csv", scheme="gs"),
        "not gzip": at("no.csv.gz"),
        "key and secret, not encoded": "s3://canarykey:canary/word@bucket/table.csv",
        "another machine's file": at("table.csv", scheme="file"),
        "no port": at("table.csv", "127.0.0.1:canaryword"),
        "chain": f"simplecache::{at('404.csv')}",
        "zip": f"zip://table.csv::{at('404.zip')}",
        "password not encoded": f"http://canaryuser:pass?canary/word@{host}/404.csv?{QUERY}",
        "delimiters encoded": f"http://canaryuser%3Acanaryword%40{host}/404.csv%3F{QUERY}",
        "one slash": f"http:/{LOGIN}@{host}/table.csv?{QUERY}",
        "pattern": at("*.csv.zst"),
        "FTP": at("table.csv", "127.0.0.1:1", scheme="ftp"),
        "WebHDFS": at("table.csv", "127.0.0.1:1", scheme="webhdfs"),
        "memory": at("table.csv", scheme="memory"),
    }


@pytest.fixture(autouse=True)
def logged(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(logging.DEBUG):
        yield caplog


@pytest.fixture
def search(
    home: Path, logged: pytest.LogCaptureFixture, prefect_server: None
) -> Callable[[], None]:
    """Search the home, the logs, and Prefect's database and storage."""

    def found_nothing() -> None:
        for where, content in stored_contents(home, logged):
            assert not leaks(content), where

    return found_nothing


def error_texts(caught: BaseException) -> str:
    """An error, its representation and its traceback, with causes and contexts."""
    return f"{caught} {caught!r} {''.join(traceback.format_exception(caught))}"


def test_every_test_url_contains_secrets(host: str) -> None:
    assert len(sources(host)) >= 20
    assert all(leaks(url) for url in sources(host).values())
    assert {USER.encode(), b"tokencanary"} <= set(leaks(sources(host)["not found"]))


def test_source_with_credentials_and_query_is_read(
    host: str, tmp_path: Path, search: Callable[[], None]
) -> None:
    """The path alone determines the format."""
    for k, name in enumerate(("table.csv", "table.parquet")):
        url = f"http://{LOGIN}@{host}/{name}?{QUERY}#{ANCHOR}"
        assert [x.format.title.lower() for x in open_source(url).files] == [name.rpartition(".")[2]]
        assert not leaks(repr(open_source(url)))
        (tmp_path / name).mkdir()
        request = write_request(tmp_path / name, source=url, request={"version": f"v{k}"})
        assert run_release(request) == f"v{k}-r1"
        assert run_release(request) == f"v{k}-r1"
    search()


def test_format_of_a_compressed_url_comes_from_its_path(host: str) -> None:
    source = open_source(f"http://{LOGIN}@{host}/table.csv.gz?{QUERY}")
    assert list(column_types(*source.files)) == ["c0", "c1", "c2"]


def test_format_of_plain_paths_ignores_question_marks() -> None:
    assert isinstance(format_of("data/what?.csv"), CsvTables)
    assert isinstance(format_of("https://host/table.csv.gz?a=b.parquet#c.pq"), CsvTables)
    assert isinstance(format_of("s3://bucket/table-?.parquet"), ParquetTables)
    assert format_of("https://host/table?name=x.csv") is None


def test_failing_sources_leak_nothing_from_commands(
    host: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], search: Callable[[], None]
) -> None:
    for name, url in [*sources(host).items()][IN_A_COMMAND]:
        request = write_request(tmp_path, source=url)
        for words in (("release", request, "--yes"), ("new", url, "--folder", tmp_path / "new")):
            code, out, err = run_command(*words, "--json", capsys=capsys)
            assert code in {1, 2}, name
            assert '"error"' in out, name
            assert not leaks(out + err), name
    assert not (tmp_path / "new").exists()
    search()


def test_failing_sources_leak_nothing_from_a_flow(
    host: str, tmp_path: Path, search: Callable[[], None]
) -> None:
    from gramercy.flows.release import release

    for name, url in [*sources(host).items()][IN_A_RUN]:
        with pytest.raises(GramercyError) as caught:
            release(read_registered(write_request(tmp_path, source=url)))
        assert not leaks(error_texts(caught.value)), name
    search()


def test_refused_remote_table_leaks_no_secrets(host: str, tmp_path: Path) -> None:
    url = f"http://{LOGIN}@{host}/table.csv?{QUERY}"
    cells = {"privacy_unit": "cell", "rows": 40}
    rows = {"mechanism": {"name": "rows", "epsilon": 1.0, "delta": 1e-6}}
    for changes in ({"rows": 41}, {"rows": 2}, cells):
        request = rows | {"normalisation": "box"} if changes is cells else {}
        with pytest.raises(GramercyError) as caught:
            run_release(write_request(tmp_path, source=url, request=request, **changes))
        assert f"http://{host}/table.csv" in caught.value.facts.values()
        assert not leaks(error_texts(caught.value))


def test_missing_remote_file_leaks_no_secrets(host: str) -> None:
    existing = open_source(f"http://{LOGIN}@{host}/table.csv?{QUERY}")
    file = f"http://{LOGIN}@{host}/404.csv?{QUERY}"
    missing = source_file(existing.fs, file, existing.url)
    source = Source(existing.fs, (missing,), existing.url)
    for call, problem in (
        (source.fingerprint, families.FILE),
        (lambda: column_types(missing), families.FILE),
    ):
        with raises(problem, file=f"http://{host}/404.csv") as caught:
            call()
        assert not leaks(error_texts(caught.value))


def test_key_in_a_source_url_is_refused_with_a_hint() -> None:
    with raises(families.SOURCE, source="s3://bucket/table.csv", scheme="s3") as caught:
        open_source("s3://canarykey:canarysecret@bucket/table.csv")
    assert "AWS_SECRET_ACCESS_KEY" in caught.value.hint
    assert not leaks(str(caught.value))


ARCHIVES = [
    f"nowhere://{LOGIN}@host/a?{QUERY}",
    f"gs://{LOGIN}@bucket/a?{QUERY}",
    "s3://canarykey:canarysecret@bucket/a",
    f"http://{LOGIN}@nothing.invalid/a",
    f"http://{LOGIN}@127.0.0.1:1/a?{QUERY}",
    f"http://{LOGIN}@127.0.0.1:1/a",
    f"http://{LOGIN}@127.0.0.1:canaryword/a",
    f"file://{LOGIN}@host/a?{QUERY}",
    f"local://{LOGIN}@host/a?{QUERY}",
    f"simplecache::http://{LOGIN}@127.0.0.1:1/a?{QUERY}",
    f"ftp://{LOGIN}@127.0.0.1:1/a",
    f"ftp://{LOGIN}@nothing.invalid/a?{QUERY}",
    f"webhdfs://{LOGIN}@127.0.0.1:1/a",
    f"webhdfs://{LOGIN}@nothing.invalid/a",
    f"memory://{LOGIN}@host/a",
    f"memory://host/a?{QUERY}",
    f"s3://bucket/a?{QUERY}",
    f"http:/{LOGIN}@host/a?{QUERY}",
    f"zip://a::http://{LOGIN}@127.0.0.1:1/a.zip?{QUERY}",
    f"abfs://{LOGIN}@host/a?{QUERY}",
    f"http://canaryuser%3Acanaryword%40127.0.0.1:1/a%3F{QUERY}",
    f"sftp://{LOGIN}@127.0.0.1:1/a?{QUERY}",
]


def test_secrets_in_an_archive_url_are_refused(tmp_path: Path) -> None:
    for url, problem, shown_url in (
        ("s3://canarykey:canarysecret@bucket/a", families.NOT_AN_ARCHIVE, "s3://bucket/a"),
        (f"memory://host/a?{QUERY}", families.NOT_AN_ARCHIVE, "memory://host/a"),
    ):
        with raises(problem, url=shown_url) as caught:
            gramercy.open(url)
        assert not leaks(error_texts(caught.value))


LEDGERS = [
    f"postgresql://{LOGIN}@127.0.0.1:1/ledger",
    f"postgresql://{LOGIN}@127.0.0.1:1/ledger?{QUERY}",
    f"mysql://{LOGIN}@127.0.0.1:1/ledger?{QUERY}",
    f"postgresql://{LOGIN}@nothing.invalid/ledger",
    f"postgresql://{LOGIN}@127.0.0.1:1/ledger?sslpassword=tokencanary",
    f"postgresql://{LOGIN}@127.0.0.1:1/ledger?sslmode=tokencanary",
    f"postgresql://{LOGIN}@127.0.0.1:canaryword/ledger",
    f"postgresql+tokencanary://{LOGIN}@127.0.0.1:1/ledger",
    f"postgres://{LOGIN}@127.0.0.1:1/ledger",
    f"sqlite://{LOGIN}@host/ledger?{QUERY}",
    f"sqlite:///ledger?{QUERY}",
    f"http://{LOGIN}@127.0.0.1:1/ledger?{QUERY}",
    f"{LOGIN}@127.0.0.1",
    f"postgresql:/{LOGIN}@127.0.0.1:1/ledger",
    f"postgresql://{LOGIN}@[canaryword/ledger",
    f"postgresql://{LOGIN}@/ledger?host=/tokencanary",
    f"postgresql://{LOGIN}@127.0.0.1:1/ledger?connect_timeout=tokencanary",
    f"postgresql://{LOGIN}@127.0.0.1:99999/ledger",
    f"postgresql+psycopg://{LOGIN}@127.0.0.1:1/ledger?options=tokencanary",
    f"postgresql://127.0.0.1:1/ledger?user={USER}&password=tokencanary",
    "postgresql://canaryuser:pass@canary/word@127.0.0.1:1/ledger",
    f"postgresql://{LOGIN}@127.0.0.1:1/ledger?passfile=tokencanary#{ANCHOR}",
]


def open_ledger(_: str) -> Ledger:
    return Ledger.of(Home.default())


def open_release(archive: str) -> object:
    return gramercy.open(archive)["toy/v1-r1"]


@pytest.mark.parametrize(
    ("variable", "urls", "opens", "commands"),
    [
        ("ARCHIVE", ARCHIVES, open_release, ["list", "verify --archive {url}", "show toy/v1-r1"]),
        ("LEDGER", LEDGERS, open_ledger, ["list", "budget", "release {request} --yes"]),
    ],
)
def test_failing_archives_and_ledgers_leak_no_secrets(
    variable: str,
    urls: list[str],
    opens: Callable[[str], object],
    commands: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    search: Callable[[], None],
) -> None:
    from gramercy.flows.release import release

    monkeypatch.chdir(tmp_path)  # an archive that is not a URL is a folder
    request = write_request(tmp_path)
    assert len(urls) >= 20
    for url in urls[REDUCED]:
        monkeypatch.setenv(f"GRAMERCY_{variable}_URL", url)
        with pytest.raises(GramercyError) as caught:
            release(read_registered(request))
        assert not leaks(error_texts(caught.value)), url
        with pytest.raises(GramercyError) as caught:
            opens(url)
        assert not leaks(error_texts(caught.value)), url
        for command in commands:
            words = [word.format(url=url, request=request) for word in command.split()]
            code, out, err = run_command(*words, capsys=capsys)
            assert code in {1, 2} or variable == "ARCHIVE", (words, url)
            assert not leaks(out + err), (words, url)
    search()


SCHEDULERS = [
    f"{scheme}://{rest}"
    for scheme in ("tcp", "tls", "ws", "http")
    for rest in (
        f"{LOGIN}@127.0.0.1:8786",
        f"{USER}@127.0.0.1:8786",
        f"127.0.0.1:8786?{QUERY}",
        f"127.0.0.1:8786/#{ANCHOR}",
        "canaryuser%3Acanaryword%40127.0.0.1:8786",
        "canaryuser:canaryword",
    )
]


@pytest.mark.parametrize("url", SCHEDULERS[REDUCED])
def test_scheduler_addresses_with_secrets_are_refused(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert len(SCHEDULERS) >= 20
    request = write_request(tmp_path, request={"engine": {"kind": "dask", "scheduler": url}})
    with raises(families.VALUE, key="engine.scheduler") as caught:
        read_request(request)
    assert not leaks(str(caught.value))
    code, out, err = run_command("plan", request, capsys=capsys)
    assert code == 2
    assert not leaks(out + err)


def test_scheduler_addresses_of_the_dask_configuration_leak_no_secrets(
    logged: pytest.LogCaptureFixture,
) -> None:
    import dask

    for url in SCHEDULERS[REDUCED]:
        with (
            dask.config.set({"scheduler-address": url}),
            pytest.raises(RequestError) as caught,
            _connect(None),
        ):
            pass
        assert not leaks(error_texts(caught.value)), url
    assert not leaks(logged.text)


def test_plain_scheduler_addresses_are_accepted() -> None:
    for address in ("tls://10.0.0.5:8786", "tcp://[::1]:8786", "inproc://10.0.0.5/12/1"):
        assert DaskEngine(kind="dask", scheduler=address).scheduler == address
    pattern = DaskEngine.model_json_schema()["properties"]["scheduler"]["pattern"]
    assert "@" in pattern


CONTRACTS = {
    "unknown key": "'{url}': 1\n",
    "key of a column": "columns:\n  '{url}': {{lower: a}}\n",
    "list": "source: ['{url}']\n",
    "same key twice": "source: '{url}'\nsource: '{url}'\n",
    "alias": "source: *{url}\n",
    "tag": "source: !<{url}> x\n",
    "no colon": "id: x\nsource {url}\n",
    "open quote": 'source: "{url}\n',
    "text": "{url}\n",
    "control character": 'source: "{url}\\q"\n',
    "tab": "source:\n\t{url}\n",
    "as a number": "rows: '{url}'\n",
    "as an id": "id: '{url}'\n",
    "as a title": 'title: "{url}\\n"\n',
}


@pytest.mark.parametrize("fault", CONTRACTS)
def test_unreadable_contracts_leak_no_secrets(fault: str, tmp_path: Path) -> None:
    from gramercy.pipeline.plan.request_files import read_contract

    url = f"https://{LOGIN}@host/table.csv?{QUERY}"
    (tmp_path / "contract.yaml").write_text(CONTRACTS[fault].format(url=url))
    with pytest.raises(ContractError) as caught:
        read_contract(tmp_path / "contract.yaml")
    assert not leaks(str(caught.value))


def test_unreachable_prefect_server_leaks_no_secrets(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PREFECT_API_URL", f"http://{LOGIN}@127.0.0.1:1/api?{QUERY}")
    code, out, err = run_command("serve", capsys=capsys)
    assert code == 1
    assert "http://127.0.0.1:1/api" in err
    assert not leaks(out + err)


def test_url_is_shown_without_secrets() -> None:
    for url, expected in {
        "https://me:secret@host:80/x.csv?sig=abc#part": "https://host:80/x.csv",
        "https://host/x.csv": "https://host/x.csv",
        "https://host/x.csv%3Fsig=abc": "https://host/x.csv",
        "https://me:se?cret@host/x.csv": "https://...",
        "https://me%3Asecret%40host/x.csv": "https://...",
        "https://me:secret": "https://...",
        "s3://key:se/cr@et@bucket/x.csv": "s3://bucket/x.csv",
        "s3://bucket/x@y.csv": "s3://bucket/x@y.csv",
        "/folder/https:/me:secret@host/x.csv?a": "/folder/https:/host/x.csv",
        "zip://x.csv::https://me:secret@host/x.zip?a": "zip://x.csv::https://host/x.zip",
        "simplecache::https://me:se::cret@host/x": "simplecache::https://host/x",
        "file:///my folder/x.csv": "file:///my folder/x.csv",
        "tcp://[::1]:8786": "tcp://[::1]:8786",
        "folder/what?.csv": "folder/what?.csv",
        "C:\\folder\\me@x.csv": "C:\\folder\\me@x.csv",
    }.items():
        assert without_secrets(url) == expected
        assert has_secrets(url) == (url != expected)
