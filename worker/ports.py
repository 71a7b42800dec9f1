"""TCP ports of this machine: which are free, and who listens on them."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Final

from toolcrib.scheduling.errors import NoConnection

_LISTENING: Final = "0A"


def free_port(ip: str) -> int:
    """Return a port of `ip` on which nobody listens at the moment."""
    with socket.socket(_family(ip)) as probe:
        probe.bind((ip, 0))
        return int(probe.getsockname()[1])


def check_free(ip: str, port: int, option: str) -> None:
    """Check that a server could listen on `port` of `ip`.

    Raises:
        NoConnection: It could not; the hint names `option`, which chooses another port.
    """
    try:
        with socket.socket(_family(ip)) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((ip, port))
            probe.listen(1)
    except OSError as error:
        raise NoConnection(
            f"cannot listen on {ip}:{port}: {error.strerror or error}",
            hint=f"Stop what uses the port, or choose another: {option} PORT (0: any free one)",
        ) from None


def listens(pid: int, port: int) -> bool:
    """Return whether process `pid` itself listens on `port`: somebody else's server may be there instead."""
    process = Path(f"/proc/{pid}")
    try:
        listeners = {
            f"socket:[{fields[9]}]"
            for table in ("tcp", "tcp6")
            for fields in map(str.split, (process / "net" / table).read_text().splitlines()[1:])
            if fields[3] == _LISTENING and int(fields[1].rpartition(":")[2], 16) == port
        }
        return any(str(handle.readlink()) in listeners for handle in (process / "fd").iterdir())
    except OSError:
        return False


def _family(ip: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in ip else socket.AF_INET
