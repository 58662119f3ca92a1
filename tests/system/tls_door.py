"""TLS in front of a socket, as a site's web server does it: `tls_door.py CERT KEY unix:PATH|tcp:PORT` prints its port."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat


def certificate(folder: Path, *names: str) -> tuple[list[str], str]:
    """Certificate and key of these names, and the mark by which a browser is told to believe them."""
    cert, key = folder / "cert.pem", folder / "key.pem"
    words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    known = ["-subj", f"/CN={names[0]}", "-addext", f"subjectAltName={','.join(f'DNS:{name}' for name in names)}"]
    subprocess.run([*words, *known, "-keyout", str(key), "-out", str(cert)], check=True, capture_output=True)
    public = x509.load_pem_x509_certificate(cert.read_bytes()).public_key()
    spki = public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return [str(cert), str(key)], base64.b64encode(hashlib.sha256(spki).digest()).decode()


@contextmanager
def door(certificate: list[str], leads: str) -> Iterator[int]:
    """The port of a door that leads to `leads`."""
    with subprocess.Popen([sys.executable, __file__, *certificate, leads], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            yield int(process.stdout.readline())
        finally:
            process.terminate()


async def _copied(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()


async def _run(cert: str, key: str, leads: str) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    kind, _, where = leads.partition(":")

    async def led(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner = asyncio.open_unix_connection(where) if kind == "unix" else asyncio.open_connection("127.0.0.1", where)
        there, back = await inner
        await asyncio.gather(_copied(reader, back), _copied(there, writer))

    server = await asyncio.start_server(led, "127.0.0.1", 0, ssl=context)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_run(*sys.argv[1:]))
