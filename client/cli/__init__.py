"""The command line `toolcrib`. Nothing here imports Temporal before a command needs it: that alone takes seconds."""

from toolcrib.client.cli.app import main

__all__ = ["main"]
