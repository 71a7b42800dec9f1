"""The demo: a small lab on this machine, a dozen tasks, and what became of them."""

from __future__ import annotations

from toolcrib.client.demo.show import run_demo

__all__ = ["run_demo"]
