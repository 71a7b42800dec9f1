"""Which Temporal server is meant, how it is to be reached, and who said so."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from temporalio.envconfig import ClientConfigProfile, ClientConnectConfig

from toolcrib.scheduling.errors import NoConnection

DEFAULT_ADDRESS: Final = "127.0.0.1:7233"
DEFAULT_NAMESPACE: Final = "default"
MAX_PORT: Final = 65_535

_HOST = re.compile(r"\[[0-9A-Fa-f:.%]+\]|[^\s\[\]:/]+")


@dataclass(frozen=True, kw_only=True)
class Target:
    """A Temporal server, with what an error message has to say about it."""

    address: str
    """`HOST:PORT`."""
    source: str
    """Who named the address: "as given", a variable, a profile or the default."""
    namespace: str
    tls: bool
    tls_reason: str
    config: ClientConnectConfig
    """API key, TLS and headers, for `Client.connect`."""

    def __str__(self) -> str:
        return f"{self.address} (address {self.source}; TLS {'on' if self.tls else 'off'}, {self.tls_reason})"


def find_target(address: str | None = None, namespace: str | None = None) -> Target:
    """Return the server that the arguments, the `TEMPORAL_*` variables and the profile file name, in this order.

    Raises:
        NoConnection: the address is malformed, or the profile or a certificate cannot be read.
    """
    profile = _load_profile()
    named, source = _address_and_source(address, profile)
    config = _connect_config(profile)
    return Target(
        address=checked_address(named, source),
        source=source,
        namespace=namespace or config.get("namespace") or DEFAULT_NAMESPACE,
        tls=bool(config.get("tls")),
        tls_reason=_tls_reason(profile),
        config=config,
    )


def plain_target(address: str, namespace: str = DEFAULT_NAMESPACE) -> Target:
    """Return a server of our own: without TLS or key, whatever variables and profiles say of other servers."""
    return Target(
        address=address,
        source="of the embedded server",
        namespace=namespace,
        tls=False,
        tls_reason="as it has none",
        config={},
    )


def checked_address(address: str, source: str) -> str:
    """Return `address` if it is `HOST:PORT`; `source` says where it came from.

    Raises:
        NoConnection: it is not.
    """
    if "://" in address:
        bare = address.partition("://")[2].partition("/")[0]
        hint = f"Write {bare if ':' in bare else bare + ':7233'}; TLS is asked for by TEMPORAL_TLS=true"
        raise NoConnection(f"address {address!r} ({source}) begins with a scheme", hint=hint)
    host, colon, port = address.rpartition(":")
    if not colon or (":" in host and not host.startswith("[")):
        raise NoConnection(f"address {address!r} ({source}) has no port", hint=f"Write {_with_port(address)}")
    if not _HOST.fullmatch(host):
        raise NoConnection(f"address {address!r} ({source}) has no valid host", hint="Write HOST:PORT")
    if not (port.isascii() and port.isdecimal() and 1 <= int(port[:6]) <= MAX_PORT and len(port) <= len(str(MAX_PORT))):
        hint = f"Write {host}:PORT; Temporal's usual port is 7233"
        raise NoConnection(f"address {address!r} ({source}): the port is not a number from 1 to {MAX_PORT}", hint=hint)
    return address


def _with_port(host: str) -> str:
    return f"[{host}]:7233" if ":" in host else f"{host or 'HOST'}:7233"


def _load_profile() -> ClientConfigProfile:
    try:
        return ClientConfigProfile.load()
    except RuntimeError as error:
        reason = " ".join(str(error).split())
        hint = "Correct the file, or the variables TEMPORAL_CONFIG_FILE and TEMPORAL_PROFILE"
        raise NoConnection(f"Temporal's settings in {_profile_file()} cannot be used: {reason}", hint=hint) from None


def _connect_config(profile: ClientConfigProfile) -> ClientConnectConfig:
    try:
        return profile.to_client_connect_config()
    except OSError as error:
        hint = f"Correct the path, in a TEMPORAL_TLS_* variable or in {_profile_file()}"
        raise NoConnection(f"cannot read the TLS file {error.filename}: {error.strerror}", hint=hint) from None


def _address_and_source(address: str | None, profile: ClientConfigProfile) -> tuple[str, str]:
    if address is not None:
        return address, "as given"
    if os.environ.get("TEMPORAL_ADDRESS"):
        return os.environ["TEMPORAL_ADDRESS"], "from the variable TEMPORAL_ADDRESS"
    if profile.address:
        return profile.address, f"from {_profile_file()}"
    return DEFAULT_ADDRESS, "by default"


def _tls_reason(profile: ClientConfigProfile) -> str:
    if profile.tls is not None:
        set_by_variable = any(name.startswith("TEMPORAL_TLS") for name in os.environ)
        return "by a TEMPORAL_TLS variable" if set_by_variable else f"by {_profile_file()}"
    return "because an API key is set" if profile.api_key is not None else "by default"


def _profile_file() -> str:
    path = os.environ.get("TEMPORAL_CONFIG_FILE") or str(_config_folder() / "temporalio" / "temporal.toml")
    name = os.environ.get("TEMPORAL_PROFILE")
    return f"profile {name} of {path}" if name else path


def _config_folder() -> Path:
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
