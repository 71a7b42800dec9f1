"""What a host file says of runners: which ones the host has, and which ones its devices of one driver type have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from toolcrib.activities.dispatcher import EntryPoints
from toolcrib.activities.runners import EXEC, load_goal_runner, load_workflow_runner
from toolcrib.activities.runners.template import checked_command, checked_word
from toolcrib.definitions.yaml_value import YamlValue

_KEYS: Final = ("goal", "workflow", "exec")
_BY_DRIVER_TYPE: Final = "by_driver_type"


@dataclass(frozen=True, kw_only=True)
class RunnerNames:
    """Runners by name or `module:attribute`; without one, tasks of that kind are not run."""

    goal: str | None = None
    workflow: str | None = None
    command: tuple[str, ...] = ()
    """What the goal runner `exec` runs."""
    by_driver_type: Mapping[str, RunnerNames] = field(default_factory=dict)
    """Those of devices of one driver type, whole: what the file leaves out there is the host's."""

    def load(self) -> EntryPoints:
        """Return the runners themselves.

        Raises:
            InvalidRequest: there is no such runner, or it cannot be loaded.
        """
        return EntryPoints(
            goals=load_goal_runner(self.goal, self.command) if self.goal else None,
            workflows=load_workflow_runner(self.workflow) if self.workflow else None,
        )


def read_runners(value: YamlValue, driver_types: Sequence[str]) -> RunnerNames:
    """Return what is written under `runners` of a host that has devices of these types."""
    found = value.mapping(known=(*_KEYS, _BY_DRIVER_TYPE))
    host = _read(found, RunnerNames())
    special: dict[str, RunnerNames] = {}
    if _BY_DRIVER_TYPE in found:
        known = tuple(dict.fromkeys(driver_types))
        for driver_type, entry in found[_BY_DRIVER_TYPE].mapping(known=known).items():
            special[driver_type] = _read(entry.mapping(known=_KEYS), host)
            _check_exec(entry, special[driver_type])
    _check_exec(value, host)
    if "exec" in found and not any(names.goal == EXEC for names in (host, *special.values())):
        raise found["exec"].fault("is the command of the goal runner exec; write goal: exec beside it")
    return replace(host, by_driver_type=special)


def _read(found: Mapping[str, YamlValue], default: RunnerNames) -> RunnerNames:
    return RunnerNames(
        goal=found["goal"].text() if "goal" in found else default.goal,
        workflow=found["workflow"].text() if "workflow" in found else default.workflow,
        command=_command(found["exec"]) if "exec" in found else default.command,
    )


def _check_exec(value: YamlValue, names: RunnerNames) -> None:
    if names.goal == EXEC and not names.command:
        raise value.fault('goal: exec needs the command beside it, such as exec: [my-agent, --goal, "{goal}"]')


def _command(value: YamlValue) -> tuple[str, ...]:
    words = [entry.checked(checked_word, entry.text()) for entry in value.entries()]
    command, *rest = value.checked(checked_command, words)
    if "/" in command:  # from the folder of the file, as all paths in it
        command = str(Path(value.file.parent, command).absolute())
    return command, *rest
