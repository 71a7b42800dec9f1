"""Browsers: each lease gets a Chromium of its own, started for it with an empty profile, and gone afterwards."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from toolcrib.activities.context import LeaseContext, RunningWork
from toolcrib.activities.drivers.finding import FoundDevice, numbered
from toolcrib.scheduling.device import DeviceSpec
from toolcrib.scheduling.errors import InvalidRequest

CDP_URL: Final = "TOOLCRIB_CDP_URL"
"""The variable in which a work finds its browser, such as `http://127.0.0.1:40123`."""
PROGRAMS: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FOLDER: Final = ".browser"
"""What a browser writes, inside the folder of its lease."""
PAUSE: Final = 0.02
LAST_WORDS: Final = 200
"""Characters of what a browser that ended said last."""

_FLAGS: Final = (
    "--remote-debugging-port=0",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-breakpad",
    "--password-store=basic",
)
"""Any free port, and no calls home."""


class BrowserDriver:
    """The driver `browser`. A device's properties may say `executable`, `headless`, `window_size` and `flags`."""

    async def find(self, count: int | None, properties: Mapping[str, str]) -> list[FoundDevice]:
        """Return as many browsers as the host file asks for: browser-1, browser-2 and so on.

        Raises:
            InvalidRequest: there is no Chromium on this host, or nobody said how many.
        """
        program(properties)
        return numbered("browser", count)

    def physical_id(self, device: DeviceSpec, host_id: str) -> str:
        """Return host and device: browsers of two hosts on one machine have nothing in common."""
        return f"browser/{host_id}/{device.id}"

    async def check(self, device: DeviceSpec, context: LeaseContext) -> None:
        """Raise if there is no Chromium, or a property makes no sense."""
        _command(device.properties, context.folder)

    async def prepare(self, device: DeviceSpec, context: LeaseContext) -> None:
        """Start a browser under the guard, and tell the work where it is."""
        folder = context.folder / FOLDER
        for part in (folder, folder / "home", folder / "tmp"):
            part.mkdir(mode=0o700)
        work = await _started(_command(device.properties, folder), folder, context)
        ended = asyncio.ensure_future(work.wait())
        try:
            context.environment[CDP_URL] = await _address(folder, ended)
        finally:
            ended.cancel()  # the waiting; the browser lives on with its lease

    async def clean(self, device: DeviceSpec, context: LeaseContext) -> None:
        """Wipe what the browser wrote; all of its processes have been killed."""
        folder = context.folder / FOLDER
        if folder.exists():
            await asyncio.to_thread(shutil.rmtree, folder)


def program(properties: Mapping[str, str]) -> str:
    """Return the path of the Chromium that the properties name, or that this host has.

    Raises:
        InvalidRequest: there is none.
    """
    wanted = properties.get("executable")
    names = (wanted,) if wanted else PROGRAMS
    for name in names:
        if (found := shutil.which(name)) is not None:
            return found
    raise InvalidRequest(
        f"there is no Chromium on this host ({', '.join(names)})",
        hint="Install it (Debian: apt-get install chromium), or name one in the property executable.",
    )


def _command(properties: Mapping[str, str], folder: Path) -> list[str]:
    """Return the command that starts a browser with its profile in `folder`.

    Raises:
        InvalidRequest: there is none, or a property makes no sense.
    """
    command = [program(properties), *_FLAGS, f"--user-data-dir={folder / 'profile'}"]
    headless = properties.get("headless", "yes")
    if headless not in ("yes", "no"):
        raise InvalidRequest(f"property headless: {headless!r} is neither 'yes' nor 'no'")
    if headless == "yes":
        command.append("--headless=new")
    if os.geteuid() == 0:  # Chromium refuses to run its sandbox as root
        command.append("--no-sandbox")
    if (size := properties.get("window_size")) is not None:
        width, _, height = size.partition("x")
        if not (width.isdecimal() and height.isdecimal()):
            raise InvalidRequest(f"property window_size: {size!r} is no size such as '1280x720'")
        command.append(f"--window-size={width},{height}")
    try:
        command += shlex.split(properties.get("flags", ""))
    except ValueError as error:
        raise InvalidRequest(f"property flags: {error}") from None
    return [*command, "about:blank"]


async def _started(command: list[str], folder: Path, context: LeaseContext) -> RunningWork:
    # Its own folder through the working folder: the path of a socket may have no more than 107 characters.
    temporary = {"TMPDIR": "/proc/self/cwd/tmp"}
    home = {name: str(folder / "home") for name in ("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME")}
    nothing = os.open(os.devnull, os.O_RDONLY)
    said = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        return await context.guard.spawn(
            context.lease.id,
            command,
            env={**context.environment, **home, **temporary},
            cwd=folder,
            stdin=nothing,
            stdout=said,
            stderr=said,
        )
    finally:
        os.close(nothing)
        os.close(said)


async def _address(folder: Path, ended: asyncio.Future[int]) -> str:
    """Return where a browser listens, as soon as it does; Chromium writes the port, and then its path, into a file.

    Raises:
        RuntimeError: it has ended.
    """
    file = folder / "profile" / "DevToolsActivePort"
    while not (await asyncio.wait({ended}, timeout=PAUSE))[0]:
        port, newline, _ = file.read_text().partition("\n") if file.exists() else ("", "", "")
        if newline:
            return f"http://127.0.0.1:{port}"
    said = (folder / "log").read_text(errors="replace").strip().splitlines()
    reason = said[-1][-LAST_WORDS:] if said else "without a word"
    raise RuntimeError(f"the browser ended with code {ended.result()}: {reason}")
