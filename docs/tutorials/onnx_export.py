"""ONNX: the shipped Puluc policy becomes one file, which answers and plays without torch.

pip install "tradgames-env[onnx,train]". Takes some seconds; TUTORIAL_STEPS is how many games are played.
"""

import os
import pathlib
import tempfile
import time

import numpy as np
import onnxruntime

import tradgames_env as tg
from training.export import export_onnx
from training.match import play_match

count = int(os.environ.get("TUTORIAL_STEPS", "20"))

with tempfile.TemporaryDirectory() as folder:
    # As `tradgames export checkpoints/puluc --output puluc.onnx` does: written, read back, compared with torch.
    result = export_onnx("checkpoints/puluc", pathlib.Path(folder) / "puluc.onnx")
    print(f"largest difference from torch: {result.difference:.0e}")

    # For any program in any language: observations as the environments give them, as many at a time as you like.
    games = tg.BatchGames("puluc", num_games=5, seed=1)
    games.play_random(20)
    session = onnxruntime.InferenceSession(result.path, providers=["CPUExecutionProvider"])
    print("the file says:", session.get_modelmeta().custom_metadata_map)
    logits, value, margin = session.run(["logits", "value", "margin"], {"observation": games.observations})
    best = np.where(games.action_masks == 1, logits, -np.inf).argmax(axis=1)
    for index, (action, worth) in enumerate(zip(best, value, strict=True)):
        print(f"its policy plays {games.position(index).notation(int(action))} and expects {worth:+.2f}")

    # Here, such a file is an agent like any other; it holds the network alone, as ":0" plays it.
    by_torch, by_onnx = tg.load_agent("checkpoints/puluc:0"), tg.load_agent(f"onnx:{result.path}")
    position = games.position(0)
    for name, agent in (("torch", by_torch), ("ONNX Runtime", by_onnx)):
        start = time.perf_counter()
        for _ in range(100):
            agent.value(position)
        print(f"{name}: {1e4 * (time.perf_counter() - start):.0f} microseconds to value a position")
    match = play_match(by_onnx, "greedy", by_onnx.rulesets[0], count, seed=1, opening_plies=4)
    print(f"score in {len(match.records)} games against greedy: {match.score:.2f}")
