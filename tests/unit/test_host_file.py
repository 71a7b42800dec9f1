"""What a host file may say, and what is said of one that is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolcrib.activities.drivers.finding import DeviceSearch
from toolcrib.scheduling.device import DeviceSpec
from toolcrib.scheduling.errors import InvalidRequest
from toolcrib.scheduling.keeping import Keep
from toolcrib.worker.host_file import HostFile, load_host_file
from toolcrib.worker.runner_names import RunnerNames

HOST_KEYS = "id, pool, devices, runners, definitions, drain_timeout, progress_throttle, log_limit, keep"


def written(folder: Path, text: str) -> Path:
    """Return a file with `text` in it."""
    file = folder / "host.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def refusal(folder: Path, text: str) -> str:
    """Return what is said of `text`, without the path of the file."""
    file = written(folder, text)
    with pytest.raises(InvalidRequest) as refused:
        load_host_file(file)
    assert refused.value.exit_code == 4
    assert refused.value.hint
    assert "\n" not in refused.value.message
    return refused.value.message.removeprefix(f"{file}:").strip()


def device(body: str) -> str:
    """Return a host file whose second device has `body`, beginning at line 5, column 16."""
    return f"""\
host:
  id: lab-1
  devices:
    - {{id: slot-1, driver: local}}
    - {{id: d2, {body}}}
"""


def test_it_reads_the_documented_example(tmp_path: Path) -> None:
    """Every documented key means what the documentation says."""
    (tmp_path / "definitions").mkdir()
    text = """\
host:
  id: lab-1
  pool: browsers
  devices:
    - {id: slot-1, driver: local, tags: [x86_64, linux]}
    - {id: slot-2, driver: local, driver_type: worker-slot, properties: {rack: "7"}}   # a comment
  runners: {goal: shell, workflow: definition}
  definitions: ./definitions
  drain_timeout: 10m
  progress_throttle: 1s
  log_limit: 8MiB
  keep: {age: 7d, bytes: 100GiB}
"""
    assert load_host_file(written(tmp_path, text)) == HostFile(
        id="lab-1",
        pool="browsers",
        devices=(
            DeviceSpec(id="slot-1", driver="local", driver_type="local", tags=("linux", "x86_64")),
            DeviceSpec(id="slot-2", driver="local", driver_type="worker-slot", properties={"rack": "7"}),
        ),
        runners=RunnerNames(goal="shell", workflow="definition"),
        definitions=tmp_path / "definitions",
        drain_timeout=600.0,
        progress_throttle=1.0,
        log_limit=8 << 20,
        keep=Keep(age=7 * 86_400.0, bytes=100 << 30),
    )


def test_only_id_and_devices_are_needed(tmp_path: Path) -> None:
    """The rest has defaults: pool `default`, no runners, ten minutes to drain."""
    host = load_host_file(written(tmp_path, "host: {id: h, devices: [{id: a, driver: local}]}"))
    assert (host.pool, host.runners, host.definitions, host.drain_timeout) == ("default", RunnerNames(), None, 600.0)
    assert host.progress_throttle == 0.25
    assert (host.log_limit, host.keep) == (64 << 20, Keep(age=30 * 86_400.0, bytes=10 << 30))


def test_an_entry_without_an_id_is_for_its_driver_to_find(tmp_path: Path) -> None:
    """It stands for what the driver finds when the host starts: so many devices, or all there are."""
    text = """\
host:
  id: h
  devices:
    - {driver: browser, count: 2, tags: [linux], properties: {window_size: 1280x720}}
    - {id: slot-1, driver: local}
    - {driver: adb, driver_type: phone}
"""
    host = load_host_file(written(tmp_path, text))
    assert [device.id for device in host.devices] == ["slot-1"]
    assert host.searches == (
        DeviceSearch(
            driver="browser",
            driver_type="browser",
            tags=("linux",),
            properties={"window_size": "1280x720"},
            count=2,
        ),
        DeviceSearch(driver="adb", driver_type="phone"),
    )


def test_plain_seconds_are_a_duration(tmp_path: Path) -> None:
    """`drain_timeout: 90` needs no quotes."""
    text = "host: {id: h, devices: [{id: a, driver: local}], drain_timeout: 90}"
    assert load_host_file(written(tmp_path, text)).drain_timeout == 90


def test_anchors_and_merge_keys_work(tmp_path: Path) -> None:
    """A device may take over what another has, and say some of it differently."""
    text = """\
host:
  id: h
  devices:
    - &slot {id: a, driver: local, tags: [linux]}
    - {<<: *slot, id: b}
    - {<<: [{driver_type: vm}, *slot], id: c, tags: [arm64]}
"""
    host = load_host_file(written(tmp_path, text))
    assert [(device.id, device.driver_type, device.tags) for device in host.devices] == [
        ("a", "local", ("linux",)),
        ("b", "local", ("linux",)),
        ("c", "vm", ("arm64",)),
    ]


@pytest.mark.parametrize(
    ("tag", "meaning"),
    [
        ("14", "is a number"),
        ("3.10", "is a number"),
        ("034", "is a number"),
        ("1e3", "is a number"),
        ("0x1F", "is a number"),
        ("-.inf", "is a number"),
        (".NaN", "is a number"),
        ("1_000", "is a number"),
        ("2026-11-30", "is a date"),
        ("no", "means true or false"),
        ("NO", "means true or false"),
        ("On", "means true or false"),
        ("true", "means true or false"),
        ("~", "means nothing"),
        ("Null", "means nothing"),
        ("22:30", "is a number to base 60"),
        ("1:30:00", "is a number to base 60"),
    ],
)
def test_what_yaml_takes_for_something_else_needs_quotes(tmp_path: Path, tag: str, meaning: str) -> None:
    """A tag is a text as written, never `3.1` for `3.10` or `False` for `no`; in quotes it is that text."""
    said = refusal(tmp_path, device(f"driver: local, tags: [usb, {tag}]"))
    assert said == f"5:43: host.devices[1].tags[1]: {tag} {meaning}, put it in quotes"

    host = load_host_file(written(tmp_path, device(f"driver: local, tags: ['{tag}']")))
    assert host.devices[1].tags == (tag,)


@pytest.mark.parametrize("tag", ["16.1.1", "android-14", "os=16", "y", "v1", "1.2.3.4:80", "nope", "客厅", "[weird]"])
def test_what_only_looks_odd_is_a_text(tmp_path: Path, tag: str) -> None:
    """Versions of three parts, addresses and other scripts need no quotes, unless YAML itself asks for them."""
    item = f"'{tag}'" if tag.startswith("[") else tag
    assert load_host_file(written(tmp_path, device(f"driver: local, tags: [{item}]"))).devices[1].tags == (tag,)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('driver: local, tags: "pixel, android-14"', "5:37: host.devices[1].tags: must be a list"),
        ("driver: local, tags: ", "5:31: host.devices[1].tags: is empty"),
        ("driver: local, tags: {a: b}", "5:37: host.devices[1].tags: must be a list"),
        ("driver: local, tags: [[a]]", "5:38: host.devices[1].tags[0]: must be a text"),
        ("driver: local, tags: ['']", "5:38: host.devices[1].tags[0]: a tag is blank"),
        (
            f"driver: local, tags: [{'x' * 129}]",
            "5:38: host.devices[1].tags[0]: a tag has 129 characters, the limit is 128",
        ),
        (
            f"driver: local, tags: {[f't{n}' for n in range(65)]}",
            "5:37: host.devices[1].tags: 65 tags, the limit is 64",
        ),
        ("driver: local, tag: [a]", "5:31: host.devices[1].tag: unknown key; did you mean tags?"),
        ("driver: 7", "5:24: host.devices[1].driver: 7 is a number, put it in quotes"),
        ("driver: ''", "5:24: host.devices[1].driver: '' is not 1 to 64 of A-Z a-z 0-9 . _ : -"),
        ("drivre: local", "5:16: host.devices[1].drivre: unknown key; did you mean driver?"),
        ("tags: [a]", "5:7: host.devices[1]: has no driver"),
        (
            "driver: local, count: 2",
            "5:38: host.devices[1].count: a device that has an id is one; leave out one of the two",
        ),
        ("driver: local, id: d3", "5:31: host.devices[1].id: given twice; the first one is on line 5"),
        ("driver: local, properties: [a]", "5:43: host.devices[1].properties: must be a mapping"),
        ("driver: local, properties: {n: 3}", "5:47: host.devices[1].properties.n: 3 is a number, put it in quotes"),
        ("driver: local, ? [a] : b", "5:33: host.devices[1]: a key must be a text; put braces and brackets in quotes"),
        ("driver: !special local", "5:24: host.devices[1].driver: the tag !special is not known"),
        (
            "driver: !!python/name:os.system x",
            "5:24: host.devices[1].driver: the tag tag:yaml.org,2002:python/name:os.system is not known",
        ),
        ("<<: {driver: local}, <<: {tags: [a]}", "5:37: host.devices[1].<<: given twice; the first one is on line 5"),
        ("<<: local", "5:20: host.devices[1].<<: must be a mapping, or a list of mappings"),
    ],
)
def test_a_wrong_device_is_pointed_at(tmp_path: Path, body: str, said: str) -> None:
    """The error has line, column, key, what is wrong and what is allowed."""
    assert refusal(tmp_path, device(body)) == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("host: {id: h}", "1:7: host: has no devices"),
        ("host: {devices: [{id: a, driver: local}]}", "1:7: host: has no id"),
        ("host:\n  id: h\n  devices:\n", "3:3: host.devices: is empty"),
        ("host: {id: h, devices: []}", "1:24: host.devices: has no entries; a host needs at least one device"),
        ("host: {id: h, devices: {}}", "1:24: host.devices: must be a list"),
        ("host:\n  id: h\n  devices:\n    -\n", "4:6: host.devices[0]: is empty"),
        ("host: {id: a b, devices: [{}]}", "1:12: host.id: 'a b' is not 1 to 64 of A-Z a-z 0-9 . _ : -"),
        ("host: {id: 1, devices: [{}]}", "1:12: host.id: 1 is a number, put it in quotes"),
        ("hosts: {id: h}", "1:1: hosts: unknown key; did you mean host?"),
        ("host: {}\ndevices: []", "2:1: devices: unknown key; known: host"),
        ("host: {id: h, pol: x, devices: []}", "1:15: host.pol: unknown key; did you mean pool?"),
        (
            "host: {id: h, colour: red}",
            f"1:15: host.colour: unknown key; known: {HOST_KEYS}",
        ),
    ],
)
def test_a_wrong_host_is_pointed_at(tmp_path: Path, text: str, said: str) -> None:
    """The same holds for the host itself, and for the file's outermost keys."""
    assert refusal(tmp_path, text) == said


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("drain_timeout: 5:00", "host.drain_timeout: '5:00' is not a duration such as"),
        ("drain_timeout: -5", "host.drain_timeout: '-5' is not a duration such as"),
        ("drain_timeout:", "host.drain_timeout: is empty"),
        ("drain_timeout: [5]", "host.drain_timeout: must be a text"),
        ("runners: {gaol: shell}", "host.runners.gaol: unknown key; did you mean goal?"),
        ("runners: shell", "host.runners: must be a mapping"),
        ("runners: {goal: }", "host.runners.goal: is empty"),
        ("runners: {goal: exec}", "host.runners: goal: exec needs the command beside it"),
        ("runners: {exec: [a]}", "host.runners.exec: is the command of the goal runner exec"),
        ("runners: {goal: exec, exec: []}", "host.runners.exec: names no command"),
        ("runners: {goal: exec, exec: ['']}", "host.runners.exec: names no command"),
        ("runners: {goal: exec, exec: agent}", "host.runners.exec: must be a list"),
        ("runners: {goal: exec, exec: [agent, 5]}", "host.runners.exec[1]: 5 is a number, put it in quotes"),
        ("runners: {goal: exec, exec: ['{goal}']}", "host.runners.exec: the command itself may have no place in"),
        (
            "runners: {goal: exec, exec: [a, b, '--x={gaol}']}",
            "host.runners.exec[2]: there is no place {gaol}; known: goal, goal_file, task_id, attempt, device_id, ",
        ),
        ("runners: {goal: exec, exec: [a, '{}']}", "host.runners.exec[1]: there is no place {}; known: goal, "),
        ("runners: {goal: exec, exec: [a, '{goal!r}']}", "host.runners.exec[1]: there is no place {goal!r}; known"),
        ("runners: {goal: exec, exec: [a, '{goal:9}']}", "host.runners.exec[1]: there is no place {goal:9}; known"),
        ("runners: {goal: exec, exec: [a, '{goal']}", "host.runners.exec[1]: expected '}' before end of string"),
        ("runners: {goal: exec, exec: [a, 'b}']}", "write {{ and }} for braces"),
        ("runners: {by_driver_type: {locl: {}}}", "host.runners.by_driver_type.locl: unknown key; did you mean local?"),
        (
            "runners: {by_driver_type: {local: {goal: exec}}}",
            "host.runners.by_driver_type.local: goal: exec needs the command beside it",
        ),
        (
            "runners: {by_driver_type: {local: {by_driver_type: {}}}}",
            "host.runners.by_driver_type.local.by_driver_type: unknown key",
        ),
        ("definitions: ./absent", "absent is not a folder"),
        ("log_limit: 64MB", "host.log_limit: '64MB' is not a size such as 64KiB, 64MiB, 10GiB or a number of bytes"),
        ("keep: 30d", "host.keep: must be a mapping"),
        ("keep: {days: 30}", "host.keep.days: unknown key; known: age, bytes"),
        ("keep: {age: 1 month}", "host.keep.age: '1 month' is not a duration such as"),
        ("keep: {bytes: }", "host.keep.bytes: is empty"),
        ("pool: 'a/b'", "host.pool: 'a/b' is not 1 to 64 of"),
    ],
)
def test_a_wrong_setting_is_pointed_at(tmp_path: Path, line: str, said: str) -> None:
    """Settings beside the devices are checked as strictly."""
    refused = refusal(tmp_path, f"host:\n  id: h\n  devices: [{{id: a, driver: local}}]\n  {line}\n")
    assert refused.startswith("4:")
    assert said in refused


def test_devices_of_a_kind_may_have_runners_of_their_own(tmp_path: Path) -> None:
    """What is left out there is the host's; a command with a slash is found from the folder of the file."""
    text = """\
host:
  id: h
  devices: [{id: a, driver: local}, {id: b, driver: adb}, {id: c, driver: adb, driver_type: tablet}]
  runners:
    goal: shell
    workflow: python
    exec: [agent]
    by_driver_type:
      adb: {goal: exec, exec: [./bin/agent, "--goal={goal}", "{{x}}"]}
      tablet: {goal: exec}
"""
    runners = load_host_file(written(tmp_path, text)).runners
    assert (runners.goal, runners.workflow) == ("shell", "python")
    assert runners.by_driver_type == {
        "adb": RunnerNames(goal="exec", workflow="python", command=(f"{tmp_path}/bin/agent", "--goal={goal}", "{{x}}")),
        "tablet": RunnerNames(goal="exec", workflow="python", command=("agent",)),
    }


@pytest.mark.parametrize("count", ["0", "-1", "1001", "1.5", "two", "1e1"])
def test_a_count_is_a_plain_number(tmp_path: Path, count: str) -> None:
    """From 1 to 1,000."""
    said = refusal(tmp_path, f"host:\n  id: h\n  devices:\n    - {{driver: browser, count: {count}}}\n")
    assert said == f"4:32: host.devices[0].count: '{count}' is not a number from 1 to 1,000"


def test_a_device_id_is_given_once(tmp_path: Path) -> None:
    """Two devices of one host cannot be told apart by anything but their ids."""
    text = "host:\n  id: h\n  devices:\n    - {id: a, driver: local}\n    - {id: a, driver: browser}\n"
    assert refusal(tmp_path, text) == "5:7: host.devices[1]: the host has a device a already"
