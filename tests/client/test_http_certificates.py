"""Servers that show a certificate which no public authority has signed."""

import ssl
import subprocess
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest
from support.loopback import ANY_PORT, Handler, serving

from kvflow.client.http import Http
from kvflow.errors import ServerUnreachable, UsageError


class Well(Handler):
    """Answers that all is well."""

    def do_GET(self) -> None:  # noqa: N802 - the name that http.server wants
        self.reply({"well": True})


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate of 127.0.0.1, in a folder as OpenSSL wants it, and its key beside it."""
    folder = tmp_path_factory.mktemp("authority")
    made = folder / "private.pem"
    subprocess.run(
        [
            "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
            "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1", "-addext",
            "subjectAltName=IP:127.0.0.1", "-keyout", str(folder / "key"), "-out", str(made),
        ],
        check=True,
        capture_output=True,
    )  # fmt: skip
    subprocess.run(["openssl", "rehash", str(folder)], check=True, capture_output=True)
    return made


@pytest.fixture(scope="module")
def url(certificate: Path) -> Iterator[str]:
    server = ThreadingHTTPServer(ANY_PORT, Well)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.parent / "key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    with serving(server) as plain:
        yield plain.replace("http://", "https://")


@pytest.fixture(autouse=True)
def _surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.delenv("SSL_CERT_DIR", raising=False)


async def asked(url: str) -> object:
    async with Http(url, None, 5.0) as http:
        return await http.get("/", "asking")


async def test_certificate_in_ssl_cert_file_is_trusted(
    url: str, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    assert await asked(url) == {"well": True}


async def test_certificate_in_ssl_cert_dir_is_trusted(
    url: str, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_DIR", str(certificate.parent))
    assert await asked(url) == {"well": True}


async def test_certificate_that_nobody_vouches_for_is_refused_and_says_how_to_trust_it(
    url: str,
) -> None:
    with pytest.raises(ServerUnreachable) as failure:
        await asked(url)
    assert "self-signed certificate" in failure.value.why
    assert "SSL_CERT_FILE" in failure.value.hint


@pytest.mark.parametrize("url", ["https://127.0.0.1:9", "https://far.example"])
@pytest.mark.parametrize("content", [None, "no certificate"])
def test_certificates_that_cannot_be_read_are_a_usage_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str, content: str | None
) -> None:
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_text(content)
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    with pytest.raises(UsageError) as refusal:
        Http(url, None, 5.0)
    assert refusal.value.what == f"the certificates in {file} cannot be read"
    assert refusal.value.hint == "set SSL_CERT_FILE to a file of certificates in PEM, or unset it"


def test_certificates_that_plain_http_does_not_need_are_not_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere/ca.pem")
    assert Http("http://127.0.0.1:9", None, 5.0).url == "http://127.0.0.1:9"
