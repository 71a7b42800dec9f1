"""The shop: a page with a form, and what it answers. Standard library only."""

from __future__ import annotations

import argparse
import html
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

CUPS = 9
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Tea shop</title>
<style>body {{ font: 1.2rem sans-serif; margin: 3rem }} form {{ display: flex; gap: 1rem; align-items: end }}</style>
</head>
<body>
<h1>Tea shop</h1>
<form method="post">
  <label>Tea <input name="tea" value="Assam"></label>
  <label>Cups <input name="cups" value="1" size="2"></label>
  <button>Order</button>
</form>
<p role="status">{answer}</p>
</body>
</html>
"""


class Shop(BaseHTTPRequestHandler):
    """Shows the form, and answers orders."""

    def do_GET(self) -> None:
        """Show the form."""
        self._show("")

    def do_POST(self) -> None:
        """Take an order."""
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        order = {name: values[-1] for name, values in parse_qs(body).items()}
        self._show(answer(order.get("tea", ""), order.get("cups", "")))

    def _show(self, answer: str) -> None:
        page = PAGE.format(answer=html.escape(answer)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def answer(tea: str, cups: str) -> str:
    """Return what the shop says to an order."""
    if not tea or not cups.isdecimal() or int(cups) == 0:
        return "Which tea, and how many cups?"
    if int(cups) > CUPS:
        return f"We have {CUPS} cups."
    return f"{cups} cups of {tea} are on their way."


def main() -> None:
    """Serve until Ctrl-C."""
    parser = argparse.ArgumentParser(description="A shop to be tested.")
    parser.add_argument("--port", type=int, default=8000, help="0: any free one")
    with ThreadingHTTPServer(("127.0.0.1", parser.parse_args().port), Shop) as server:
        print(f"http://127.0.0.1:{server.server_port}", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return


if __name__ == "__main__":
    main()
