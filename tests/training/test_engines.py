import os
import pathlib
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import torch

from tests.training import pure_tasks
from training.engines import EngineError, ProcessEngine, SerialEngine, open_engine


def silent(line: str) -> None:
    raise AssertionError(line)


def serial_bytes() -> list[bytes]:
    with SerialEngine() as engine:
        return [result.positions.tobytes() for result in engine.map(pure_tasks.walk, pure_tasks.walk_tasks())]


def test_processes_give_what_one_process_gives_in_order() -> None:
    with ProcessEngine(2, silent) as engine:
        for _ in range(2):
            results = list(engine.map(pure_tasks.walk, pure_tasks.walk_tasks()))
            assert [result.positions.tobytes() for result in results] == serial_bytes()
            assert {result.threads for result in results} == {1}
            assert os.getpid() not in {result.process for result in results}


def test_serial_uses_one_thread_and_gives_the_others_back() -> None:
    before = torch.get_num_threads()
    (result,) = SerialEngine().map(pure_tasks.walk, pure_tasks.walk_tasks(1))
    assert (result.threads, torch.get_num_threads()) == (1, before)


def test_a_killed_worker_changes_nothing(tmp_path: pathlib.Path) -> None:
    lines: list[str] = []
    with ProcessEngine(2, lines.append) as engine:
        results = list(engine.map(pure_tasks.walk, pure_tasks.walk_tasks(killed_once=str(tmp_path / "died"))))
    assert (tmp_path / "died").exists()
    assert [result.positions.tobytes() for result in results] == serial_bytes()
    (line,) = lines
    assert line.startswith("a worker process died; ")
    assert line.endswith("of 6 tasks begin again")


def test_a_task_that_kills_every_worker_ends_the_run() -> None:
    lines: list[str] = []
    doomed = pure_tasks.WalkTask(np.eye(4, dtype=np.float32), np.zeros((1, 4), np.float32), (0,), doomed=True)
    with ProcessEngine(1, lines.append) as engine, pytest.raises(EngineError, match="died 4 times in a row"):
        list(engine.map(pure_tasks.walk, [doomed]))
    assert len(lines) == 3


def test_errors_of_a_task_arrive_and_the_engine_goes_on() -> None:
    with ProcessEngine(1, silent) as engine:
        with pytest.raises(ValueError, match="task 3 cannot be done"):
            list(engine.map(pure_tasks.refuse, [3, 4]))
        assert list(engine.map(abs, [-1, -2])) == [1, 2]


def test_an_interrupt_from_the_terminal_is_the_parents() -> None:
    with ProcessEngine(2, silent) as engine:
        assert list(engine.map(pure_tasks.interrupted, range(4))) == [0, 1, 2, 3]


def test_workers_end_when_their_parent_is_killed() -> None:
    script = (
        "from training.engines import ProcessEngine\n"
        "import os, time\n"
        "if __name__ == '__main__':\n"
        "    engine = ProcessEngine(1, print)\n"
        "    print(next(engine.map(os.getpgid, [0])), flush=True)\n"
        "    time.sleep(600)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert parent.stdout is not None
    group = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    os.killpg(group, signal.SIGKILL)
    raise AssertionError("workers outlived their parent")


def test_unknown_engines_are_refused() -> None:
    with pytest.raises(EngineError, match="no engine 'spark'; there are serial, process, ray"):
        open_engine("spark", 2, say=silent)


def test_ray_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(EngineError, match=r"pip install 'tradgames-env\[ray\]'"):
        open_engine("ray", 2, say=silent)
