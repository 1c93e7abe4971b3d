"""A real standalone Spark cluster on loopback: a master and two workers, each its own process.

Started from the pyspark package, on ports that the system chooses, so that several test runs
on one machine never meet.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyspark

HERE = Path(__file__).parent
SPARK = Path(pyspark.__file__).parent
ANYWHERE = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")

# tests are many tiny queries: compile quickly, rather than well
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def driver_environment(folder: Path) -> dict[str, str]:
    """What a test sets in its own environment before it opens a Spark engine."""
    settings = {
        "spark.driver.extraJavaOptions": QUICK,
        "spark.executor.extraJavaOptions": QUICK,
        "spark.sql.shuffle.partitions": "8",
    }
    lines = [f"{name} {value}\n" for name, value in settings.items()]
    (folder / "spark-defaults.conf").write_text("".join(lines))
    return {
        "SPARK_CONF_DIR": str(folder),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYTHONPATH": str(HERE),  # Spark's Python processes import the functions of the tests
    }


class Cluster:
    """Use as a context manager; ``url`` is the master's address."""

    def __init__(self, folder: Path, workers: int = 2) -> None:
        self.folder = folder
        self.master = self._start("master", "org.apache.spark.deploy.master.Master")
        self.workers: list[subprocess.Popen[bytes]] = []
        try:
            self.url = self._logged("master", r"Starting Spark master at (spark://\S+)")[0]
            for number in range(workers):
                name = f"worker-{number}"
                options = ["--cores", "1", "--memory", "1g", "--work-dir", str(folder / name)]
                worker = "org.apache.spark.deploy.worker.Worker"
                self.workers.append(self._start(name, worker, *options, self.url))
            self._logged("master", r"Registering worker (\S+)", times=workers)
        except BaseException:
            self.stop()
            raise

    def _start(self, name: str, main: str, *options: str) -> subprocess.Popen[bytes]:
        environment = os.environ | {
            "SPARK_HOME": str(SPARK),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_DIRS": str(self.folder / f"{name}-local"),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": QUICK,
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": os.environ.get("XPP")
            or str(HERE),  # the executors import the functions of the tests
        }
        # where the system can do that, a process does not outlive a killed test run
        leash = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []
        with open(self.folder / f"{name}.log", "wb") as log:
            return subprocess.Popen(
                [*leash, SPARK / "bin" / "spark-class", main, *ANYWHERE, *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
                start_new_session=True,  # a group of its own, which its executors join
            )

    def _logged(self, name: str, pattern: str, times: int = 1) -> list[str]:
        """What the log of a process says, once it does so."""
        for _ in range(600):
            text = (self.folder / f"{name}.log").read_text(errors="replace")
            found = re.findall(pattern, text)
            if len(found) >= times:
                return found
            if self.master.poll() is not None:
                break
            time.sleep(0.1)
        raise RuntimeError(f"the cluster did not start:\n{text}")

    def kill(self, number: int) -> None:
        """Kill a worker and its executors at once, like a machine that loses power."""
        os.killpg(self.workers[number].pid, signal.SIGKILL)
        self.workers[number].wait()

    def stop(self) -> None:
        for process in [*self.workers, self.master]:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
