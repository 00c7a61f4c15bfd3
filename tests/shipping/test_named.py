"""Code that a conf names by dotted name is shipped as imports are, and is checked from the shipped files."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from multilang.shipping import ShippingError, WheelTarget, pack
from multilang.state.providers import named
from tests.cli.command import multilang
from tests.shipping.worker import BARE_PYTHON, run_bolt, unpack_jar

if TYPE_CHECKING:
    from pathlib import Path

    from tests.shipping.conftest import Project

# Each as a module of its own, by the setting that names it.
CODE = {
    "multilang.middleware": (
        "from multilang.component.middleware import Middleware\nfrom . import beside\nclass Named(Middleware):\n"
        "    def process(self, bolt, call):\n"
        "        bolt.log('the middleware is here')\n        return call\n"
    ),
    "topology.state.provider": (
        "from multilang.state import MemoryStateProvider\nfrom . import beside\nclass Named(MemoryStateProvider): ...\n"
    ),
    "keySerializerClass": (
        "from multilang.state.serializers import JsonSerializer\nfrom . import beside\nclass Named(JsonSerializer): ...\n"
    ),
    "multilang.transactional.store": (
        "from multilang.store.memory import MemoryStore\nfrom . import beside\nclass Named(MemoryStore): ...\n"
    ),
    "multilang.trace": "from . import beside\ndef Named(who, step, txid): ...\n",
}
CODE["valueSerializerClass"] = CODE["keySerializerClass"]
SETTINGS = sorted(CODE)


def conf_with(setting: str, name: str) -> dict[str, Any]:
    if setting == "multilang.middleware":
        return {setting: [name]}
    if setting.endswith("SerializerClass"):
        return {"topology.state.provider.config": json.dumps({setting: name})}
    return {setting: name}


def write(project: Project, setting: str) -> str:
    """A package of a name that no other test has, with the module ``code`` in it; its name."""
    package = f"{project.name}_named"
    project.write(f"{package}/__init__.py", "")
    project.write(f"{package}/beside.py", "")
    project.write(f"{package}/code.py", CODE[setting])
    return package


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("of_a_component", [False, True])
def test_what_a_conf_names_goes_along_with_its_imports(project: Project, setting: str, of_a_component: bool) -> None:
    package = write(project, setting)
    topology = project.topology()
    conf = conf_with(setting, f"{package}.code.Named")
    if of_a_component:
        topology["shout"].conf.update(conf)
    else:
        topology = topology.with_conf(conf)
    shipment = pack(topology)
    assert {f"{package}/{name}.py" for name in ("__init__", "code", "beside")} <= {i.name for i in shipment.contents}
    assert shipment.check()


@pytest.mark.parametrize("setting", ["multilang.store", "multilang.positions", "multilang.source.store"])
def test_the_class_that_a_stores_url_names_goes_along(project: Project, setting: str) -> None:
    package = write(project, "multilang.transactional.store")
    topology = project.topology()
    shipment = pack(topology.with_conf({setting: f"{package}.code.Named://here"}))
    assert f"{package}/code.py" in {each.name for each in shipment.contents}
    assert shipment.check()
    assert not named(topology.with_conf({setting: f"/var/lib.d/{package}:x"}).conf)
    with pytest.raises(ShippingError, match=rf"(?s)files alone.*{setting}.*is not a subclass"):
        pack(topology.with_conf({setting: "collections.OrderedDict://here"})).check()


@pytest.mark.parametrize("setting", SETTINGS)
def test_what_a_conf_names_and_is_not_there_is_refused(project: Project, setting: str) -> None:
    package = write(project, setting)
    topology = project.topology()

    def packed(name: str) -> None:
        pack(topology.with_conf(conf_with(setting, name))).check()

    with pytest.raises(
        ShippingError, match=rf"no module 'nowhere_to_be_found', named by .*{setting} in the topology's"
    ):
        packed("nowhere_to_be_found.code.Named")
    with pytest.raises(ShippingError, match=rf"no module '{package}.cod', named by .*{setting} in the topology's"):
        packed(f"{package}.cod.Named")
    with pytest.raises(ShippingError, match=rf"(?s)files alone.*{setting}.*has no attribute 'Nemad'"):
        packed(f"{package}.code.Nemad")
    with pytest.raises(ShippingError, match=r"is not a name of code; write 'package\.module\.Name'"):
        packed("Named")
    if not setting.endswith("trace"):
        with pytest.raises(ShippingError, match=rf"(?s)files alone.*{setting}.*is not a (subclass|Middleware)"):
            packed("collections.OrderedDict")


def test_middleware_that_a_conf_names_runs_from_an_unpacked_jar(project: Project, tmp_path: Path) -> None:
    package = write(project, "multilang.middleware")
    conf = conf_with("multilang.middleware", f"{package}.code.Named")
    topology = project.topology(text=None)
    resources = unpack_jar(pack(topology.with_conf(conf)).jar(), tmp_path / "worker")
    command = [BARE_PYTHON, "run_topology.py"]
    emitted, logged = run_bolt(command, resources, topology, "shout", ["moo"], conf)
    assert emitted == [["MOO"]]
    assert logged == ["the middleware is here"]


def test_a_conf_of_any_size_is_looked_at_and_is_no_argument_that_others_see(project: Project) -> None:
    package = write(project, "multilang.middleware")
    project.write(f"{package}/beside.py", "import sys\nassert 'hush' not in ' '.join(sys.orig_argv)\n")
    conf = {"multilang.middleware": [f"{package}.code.Named"], "table": ["x" * 50] * 5000, "password": "hush ü"}
    assert pack(project.topology().with_conf(conf)).check()


def test_an_installed_package_that_a_conf_names_is_shipped_by_a_requirement_or_left_out(project: Project) -> None:
    topology = project.topology().with_conf({"multilang.trace": "click.echo"})
    with pytest.raises(ShippingError, match=r"'click', named by multilang.trace .*--leave-out click"):
        pack(topology)
    assert pack(topology, leave_out=["click"]).check()


def test_transformations_that_components_ask_for_go_along(project: Project) -> None:
    package = f"{project.name}_audit"
    project.write(f"{package}.py", "def audited(topology):\n    return topology\n")
    topology = project.topology(more=f"Shout.transformations = ['{package}:audited']")
    shipment = pack(topology)
    assert f"{package}.py" in shipment.contents
    assert shipment.check()


def test_the_command_line_s_conf_counts_as_the_topology_s(project: Project) -> None:
    project.topology()
    shown = multilang(
        "submit", f"{project.name}.py", "--dry-run", "-c", 'multilang.middleware=["shop.tracing.Tracer"]',
        cwd=project.folder,
    )  # fmt: skip
    assert shown.returncode == 2
    assert "there is no module 'shop', named by multilang.middleware in the topology's conf" in shown.stderr


def test_what_is_named_is_followed_for_other_machines_too(project: Project, wheels: Any) -> None:
    wheels(
        "ujson", __import__("ujson").__version__, "cp312-cp312-manylinux2014_aarch64", {"ujson.cpython-312-a.so": ""}
    )
    package = write(project, "multilang.middleware")
    topology = project.topology().with_conf(conf_with("multilang.middleware", f"{package}.code.Named"))
    shipment = pack(topology, target=WheelTarget.of("3.12", "manylinux2014_aarch64"))
    assert f"{package}/beside.py" in shipment.contents
    assert sys.modules.get(f"{package}.code") is None, "nothing was executed"
