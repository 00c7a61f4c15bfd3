"""The configuration of a small cluster: its storm.yaml, the command of each JVM, and its logging."""

from __future__ import annotations

import json
import secrets
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from multilang.shipping.cluster import binding, compiled
from multilang.shipping.cluster.state import LOOPBACK
from multilang.shipping.storm_yaml import read_conf

if TYPE_CHECKING:
    from collections.abc import Mapping

    from multilang.shipping.cluster.state import ClusterState

_JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-XX:-UsePerfData")
_HEAPS = {"zookeeper": "96m", "nimbus": "192m", "drpc": "96m"}  # a supervisor's: 128m
_DRPC = Path(__file__).with_name("Drpc.java")
_CLASSES = {
    "zookeeper": "org.apache.storm.shade.org.apache.zookeeper.server.ZooKeeperServerMain",
    "nimbus": "org.apache.storm.daemon.nimbus.Nimbus",
    "drpc": _DRPC.stem,
}
_SUPERVISOR = "org.apache.storm.daemon.supervisor.Supervisor"
_LOG = """\
<configuration shutdownHook="disable">
  <appenders>
    <File name="A1" fileName="@FILE@">
      <PatternLayout pattern="%d{HH:mm:ss.SSS} %c{1.} %t [%p] %msg%n"/>
    </File>
  </appenders>
  <loggers><root level="info"><appender-ref ref="A1"/></root></loggers>
</configuration>
"""
_ZOOKEEPER = "zookeeper.properties"
_LOG_FILES = {
    "cluster": "${sys:storm.log.dir}/${sys:logfile.name}",
    "worker": "${sys:workers.artifacts}/${sys:storm.id}/${sys:worker.port}/${sys:logfile.name}",
}


def conf_folder(home: Path, daemon: str = "nimbus") -> Path:
    """Return the folder of a daemon's storm.yaml. Clients use that of Nimbus."""
    return home / ("conf" if not daemon.startswith("supervisor") else f"conf-{daemon}")


def write_settings(home: Path, state: ClusterState, jars: Path, conf: Mapping[str, Any]) -> None:
    """Create a storm.home in ``home``. ``conf``: entries that override ours."""
    for name in ("bin", "log4j2", "logs", "tmp", "data"):
        (home / name).mkdir(parents=True, exist_ok=True)
    for name in ("lib", "lib-worker"):
        _link(home / name, jars / name)
    # Workers start components with python3, which is this Python without its packages, whatever python3 is elsewhere.
    _link(home / "bin" / "python3", Path(getattr(sys, "_base_executable", sys.executable)))
    for name, file in _LOG_FILES.items():
        (home / "log4j2" / f"{name}.xml").write_text(_LOG.replace("@FILE@", file))
    if not state.exposed:
        binding.prepare(home, jars)
    if state.drpc:
        compiled.put(_DRPC, jars, _drpc_jar(home))
    _write_zookeeper(home, state)
    common = {**_common(home, state), **conf}
    _write_yaml(conf_folder(home), {**common, "storm.local.dir": str(home / "data" / "nimbus")})
    for number, (port, slots) in enumerate(zip(state.supervisors, state.slots, strict=True), 1):
        own = {
            "storm.local.dir": str(home / "data" / f"supervisor-{number}"),
            "supervisor.thrift.port": port,
            "supervisor.slots.ports": slots,
        }
        _write_yaml(conf_folder(home, f"supervisor-{number}"), {**common, **own})


def command(home: Path, daemon: str, java: str) -> list[str]:
    """Return the command line of a daemon."""
    arguments = [str(home / _ZOOKEEPER)] if daemon == "zookeeper" else []
    conf = read_conf(conf_folder(home, daemon) / "storm.yaml")
    options = binding.options(home, daemon, conf)
    main = _CLASSES.get(daemon, _SUPERVISOR)
    if daemon == "drpc" and not _drpc_jar(home).exists():
        main = str(_DRPC)  # a cluster of an earlier version; Java runs the program from its source
    return [
        java,
        f"-Xmx{_HEAPS.get(daemon, '128m')}",
        *_JVM,
        *shlex.split(str(conf.get(f"{daemon.partition('-')[0]}.childopts") or "")),
        f"-Djava.io.tmpdir={home / 'tmp'}",
        f"-Ddaemon.name={daemon}",
        f"-Dstorm.home={home}",
        f"-Dstorm.log.dir={home / 'logs'}",
        f"-Dlogfile.name={daemon}.log",
        f"-Dlog4j.configurationFile={home / 'log4j2' / 'cluster.xml'}",
        f"-Dstorm.options={options}",
        "-Dstorm.conf.file=",
        "-Djava.deserialization.disabled=true",
        "-Dzookeeper.admin.enableServer=false",
        "-cp",
        f"{home / 'lib'}/*:{home / 'extlib'}/*:{conf_folder(home, daemon)}",
        main,
        *arguments,
    ]


def _drpc_jar(home: Path) -> Path:
    return home / "extlib" / "drpc.jar"


def _common(home: Path, state: ClusterState) -> dict[str, Any]:
    worker_jvm = " ".join(_JVM)
    drpc = {
        "drpc.servers": [LOOPBACK],
        "drpc.port": state.drpc,
        "drpc.invocations.port": state.drpc_invocations,
    }
    return {
        **(drpc if state.drpc else {}),
        "storm.zookeeper.servers": [LOOPBACK],
        "storm.zookeeper.port": state.zookeeper,
        "nimbus.seeds": [LOOPBACK],
        "nimbus.thrift.port": state.nimbus,
        "storm.local.hostname": LOOPBACK,
        # Workers listen on every interface, and Storm has no setting for that: they take tuples from every client with this secret.
        "storm.messaging.netty.authentication": True,
        "storm.zookeeper.topology.auth.payload": f"multilang:{secrets.token_hex(16)}",
        "storm.log.dir": str(home / "logs"),
        "storm.workers.artifacts.dir": str(home / "logs" / "workers-artifacts"),
        "storm.log4j2.conf.dir": str(home / "log4j2"),
        # Storm's defaults ask for 3 GiB a supervisor and 768 MiB a worker.
        "supervisor.memory.capacity.mb": 4096.0,
        "worker.heap.memory.mb": 192,
        "topology.worker.max.heap.size.mb": 192.0,
        "topology.component.resources.onheap.memory.mb": 16.0,
        # Storm's default has flags for GC logs that Java 9 and newer refuse.
        "worker.childopts": f"-Xmx%HEAP-MEM%m {worker_jvm}",
        "topology.worker.logwriter.childopts": f"-Xmx32m {worker_jvm}",
        # Shorter times than a large cluster should have.
        "storm.zookeeper.session.timeout": 10000,  # ms; after a kill, the next Nimbus waits so long
        "nimbus.monitor.freq.secs": 2,
        "supervisor.monitor.frequency.secs": 1,
        # Longer times than Storm's 120, 120 and 15 seconds, so that workers and daemons that start slowly are not restarted
        # over and over. One that ends is restarted at once, whatever these are.
        "nimbus.task.launch.secs": 300,
        "supervisor.worker.start.timeout.secs": 300,
        "storm.zookeeper.connection.timeout": 60000,  # ms
        "supervisor.thrift.socket.timeout.ms": 60000,  # for a worker's heartbeat; Storm's default is 5000
        # Longer times than Storm's 30 seconds, so that a busy machine does not lose workers.
        "supervisor.worker.timeout.secs": 60,
        "nimbus.task.timeout.secs": 60,
        # If a supervisor is away for some seconds, Storm's scheduler avoids its host for half an hour. Here all
        # supervisors have the same host, so this is switched off.
        "blacklist.scheduler.tolerance.count": 1_000_000,
        "supervisor.worker.shutdown.sleep.secs": 1,
        "supervisor.localizer.update.blob.interval.secs": 5,
        "task.heartbeat.frequency.secs": 1,
        "executor.metrics.frequency.secs": 2,
        "topology.stats.sample.rate": 1.0,  # count every tuple, where Storm counts one in twenty
    }


def _write_zookeeper(home: Path, state: ClusterState) -> None:
    lines = {
        "dataDir": home / "data" / "zookeeper",
        "clientPort": state.zookeeper,
        **({} if state.exposed else {"clientPortAddress": LOOPBACK}),
    }
    (home / _ZOOKEEPER).write_text("".join(f"{key}={value}\n" for key, value in lines.items()))


def _write_yaml(folder: Path, conf: Mapping[str, Any]) -> None:
    folder.mkdir(exist_ok=True)
    # JSON values are YAML too.
    (folder / "storm.yaml").write_text("".join(f"{key}: {json.dumps(value)}\n" for key, value in conf.items()))


def _link(path: Path, target: Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to(target)
