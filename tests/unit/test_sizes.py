"""Sizes as people write them."""

from __future__ import annotations

import pytest

from toolcrib.scheduling.errors import InvalidRequest
from toolcrib.scheduling.sizes import parse_size, size_text


@pytest.mark.parametrize(
    ("text", "size"),
    [("0", 0), ("4096", 4096), ("64KiB", 65_536), (" 10 GiB ", 10 << 30), ("2TiB", 2 << 40), ("1MiB", 1 << 20)],
)
def test_sizes_have_units_of_1024(text: str, size: int) -> None:
    """A number alone is bytes."""
    assert parse_size(text, "f") == size


@pytest.mark.parametrize("text", ["", "10GB", "10G", "1.5GiB", "-1", "GiB", "1 2", "9" * 19, "1e3", "٣"])
def test_what_is_no_size_is_refused(text: str) -> None:
    """The message names the field; units that some take for 1,000 and others for 1,024 are not guessed at."""
    with pytest.raises(InvalidRequest, match=r"^keep.bytes: .* is not a size such as 64KiB, 64MiB, 10GiB or a number"):
        parse_size(text, "keep.bytes")


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 bytes"), (1023, "1023 bytes"), (64 << 20, "64 MiB"), (1_500 << 20, "1.465 GiB"), (10 << 30, "10 GiB")],
)
def test_sizes_are_shown_in_the_unit_that_fits(size: int, text: str) -> None:
    """Four digits are enough."""
    assert size_text(size) == text
