"""Ports that speak TLS, with certificates made on the spot."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path


def make_authority(folder: Path) -> None:
    """Make `ca.pem`, an authority of the test's own."""
    _openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", folder / "ca.key", "-out", folder / "ca.pem",
             "-days", "2", "-subj", "/CN=lab-ca")  # fmt: skip


def make_certificate(folder: Path, name: str, subject: str) -> None:
    """Make `NAME.pem` and `NAME.key`, signed by the folder's authority, for a subject like `IP:127.0.0.1`."""
    request, extensions = folder / f"{name}.csr", folder / f"{name}.ext"
    extensions.write_text(f"subjectAltName={subject}\nbasicConstraints=CA:FALSE")
    _openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", folder / f"{name}.key", "-out", request,
             "-subj", f"/CN={name}")  # fmt: skip
    _openssl("x509", "-req", "-in", request, "-CA", folder / "ca.pem", "-CAkey", folder / "ca.key", "-CAcreateserial",
             "-out", folder / f"{name}.pem", "-days", "2", "-extfile", extensions)  # fmt: skip


@asynccontextmanager
async def tls_port(folder: Path, name: str, *, asks: bool = False) -> AsyncIterator[int]:
    """A port that speaks TLS as `name`, wants the client's certificate if it `asks`, and hangs up after that."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / f"{name}.pem", folder / f"{name}.key")
    context.set_alpn_protocols(["h2"])
    if asks:
        context.load_verify_locations(folder / "ca.pem")
        context.verify_mode = ssl.CERT_REQUIRED
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0, ssl=context)
    async with server:
        yield server.sockets[0].getsockname()[1]


def _openssl(*arguments: str | Path) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)
