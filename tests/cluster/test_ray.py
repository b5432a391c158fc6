"""The Ray engine on clusters of this machine; ``make test-cluster`` installs Ray and runs this."""

import functools
import os
import pathlib
import signal
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest

from tests.training import pure_tasks
from tests.training.test_alphazero import QUIET, digest, small
from training import alphazero
from training.engines import EngineError, RayEngine, SerialEngine, open_engine
from training.train import train

ray = pytest.importorskip("ray")

from ray.cluster_utils import Cluster  # noqa: E402 - only where Ray is installed


def silent(line: str) -> None:
    raise AssertionError(line)


def positions(results: Iterator[pure_tasks.WalkResult]) -> list[bytes]:
    return [result.positions.tobytes() for result in results]


def serial(tasks: list[pure_tasks.WalkTask]) -> list[bytes]:
    return positions(SerialEngine().map(pure_tasks.walk, tasks))


@pytest.fixture(scope="module")
def local() -> Iterator[RayEngine]:
    with RayEngine(2) as engine:
        yield engine


def test_ray_gives_what_one_process_gives_in_order(local: RayEngine) -> None:
    results = list(local.map(pure_tasks.walk, pure_tasks.walk_tasks()))
    assert positions(iter(results)) == serial(pure_tasks.walk_tasks())
    assert {result.threads for result in results} == {1}
    assert os.getpid() not in {result.process for result in results}


def test_a_killed_worker_changes_nothing(local: RayEngine, tmp_path: pathlib.Path) -> None:
    tasks = pure_tasks.walk_tasks(killed_once=str(tmp_path / "died"))
    assert positions(local.map(pure_tasks.walk, tasks)) == serial(pure_tasks.walk_tasks())
    assert (tmp_path / "died").exists()


def test_training_gives_what_one_process_gives_whoever_dies(
    local: RayEngine, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(small(3), tmp_path / "serial", console=QUIET)
    dying = functools.partial(pure_tasks.play_shard_after_a_death, str(tmp_path / "died"))
    monkeypatch.setattr(alphazero, "play_shard", dying)
    train(small(3, selfplay={"engine": "ray", "workers": 2}), tmp_path / "ray", console=QUIET)
    assert (tmp_path / "died").exists()
    assert digest(tmp_path / "serial") == digest(tmp_path / "ray")


def test_a_task_that_kills_every_worker_ends_the_run(local: RayEngine) -> None:
    doomed = pure_tasks.WalkTask(np.eye(4, dtype=np.float32), np.zeros((1, 4), np.float32), (0,), doomed=True)
    with pytest.raises(EngineError, match="died 4 times of one task"):
        list(local.map(pure_tasks.walk, [doomed]))
    assert list(local.map(abs, [-1])) == [1]


def test_errors_of_a_task_arrive(local: RayEngine) -> None:
    with pytest.raises(ValueError, match="task 3 cannot be done"):
        list(local.map(pure_tasks.refuse, [3]))


def test_signals_are_still_the_programs(local: RayEngine) -> None:
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_node_that_goes_away_changes_nothing(local: RayEngine, tmp_path: pathlib.Path) -> None:
    local.__exit__()  # the nodes below take its place
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    _, leaving = (cluster.add_node(num_cpus=1) for _ in range(2))
    tasks = pure_tasks.walk_tasks(12, seconds=1.0)
    try:
        with open_engine("ray", 2, address=cluster.address, say=silent) as engine:
            assert len([node for node in ray.nodes() if node["Alive"]]) == 3
            timer = threading.Timer(4.0, cluster.remove_node, [leaving])
            timer.start()
            started = time.monotonic()
            assert positions(engine.map(pure_tasks.walk, tasks)) == serial(pure_tasks.walk_tasks(12))
            assert time.monotonic() - started > 4.0
            timer.join()
            assert len([node for node in ray.nodes() if node["Alive"]]) == 2
    finally:
        cluster.shutdown()


def test_a_cluster_that_is_not_there() -> None:
    with pytest.raises(EngineError, match=r"127\.0\.0\.1:1 cannot be used: .*refused"):
        RayEngine(1, "127.0.0.1:1")
