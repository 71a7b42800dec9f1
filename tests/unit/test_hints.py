"""Who is refused a field is told what to give for it."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from toolcrib.scheduling.config import PoolConfig
from toolcrib.scheduling.durations import parse_duration
from toolcrib.scheduling.errors import InvalidRequest
from toolcrib.scheduling.external import ExternalRequest
from toolcrib.scheduling.progress import checked_progress, parse_progress
from toolcrib.scheduling.request import TaskRequest, parse_request
from toolcrib.scheduling.validation import validated

WRONG = object()


def _hint(**given: Any) -> str | None:
    with pytest.raises(InvalidRequest) as caught:
        parse_request({"goal": "x", **given})
    return caught.value.hint


@pytest.mark.parametrize("model", [TaskRequest, PoolConfig, ExternalRequest])
def test_every_field_has_a_hint_of_its_own(model: type[BaseModel]) -> None:
    """Whatever is wrong with it, the hint says what is right."""
    for field in model.model_fields:
        with pytest.raises(InvalidRequest, match=f"^{field}: ") as caught:
            validated(model, {"goal": "x", "name": "x", field: WRONG} if model is not PoolConfig else {field: WRONG})
        assert caught.value.hint != InvalidRequest.default_hint


def test_a_hint_names_the_limits() -> None:
    """Also where a field is checked by itself, or is one of several."""
    assert _hint(priority=6) == "Give a whole number from 1, which is served first, to 5."
    assert "such as gpu" in (_hint(tags=[""]) or "")
    assert "128 printable" in (_hint(tags=[7]) or "")
    with pytest.raises(InvalidRequest) as caught:
        parse_duration("soon", "queue_timeout")
    assert "1h30m" in (caught.value.hint or "")
    with pytest.raises(InvalidRequest) as caught:
        checked_progress("task-1.1.1", 40, None)
    assert "40%" in (caught.value.hint or "")


def test_progress_is_read_as_a_number_or_a_percentage() -> None:
    """And what is none is refused with an example of either."""
    assert [parse_progress(text) for text in ("0.4", "40%", "1", "100%")] == [0.4, 0.4, 1.0, 1.0]
    for text in ("", "%", "forty", "40 percent", "4%0"):
        with pytest.raises(InvalidRequest, match=r"^progress: ") as caught:
            parse_progress(text)
        assert "0.4" in (caught.value.hint or "")


def test_a_devices_key_is_taken_apart() -> None:
    """It is what devices are called everywhere else; a request has host and device by themselves."""
    assert _hint(device_id="vm/slot-1") == "Give host and device each by itself: --host-id vm --device-id slot-1"
    for other in ("vm/slot-1/x", "/slot-1", "vm/", "a b/c"):
        assert "--host-id" not in (_hint(device_id=other) or "")
    assert "--device-id" not in (_hint(host_id="vm/slot-1") or "")
