"""Tables on disk: what is written is read, and everything that is wrong is told in one line."""

import errno
import json
import os
import pathlib
import shutil
from typing import Any

import numpy as np
import pytest

from tradgames_env.position import Position
from tradgames_env.rules.ruleset import load_ruleset
from tradgames_env.solving import solver, table
from tradgames_env.solving.indexing import TableError, load_index, table_label
from tradgames_env.solving.lookup import judge_moves
from tradgames_env.solving.table import Table, describe, find_endings, find_table, write_table
from tradgames_env.solving.trial import start_of

MINI = load_ruleset("puluc", "mini")


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    made = solver.solve_in_memory(MINI)
    write_table(tmp_path / "mini", made.header, made.values)
    return tmp_path / "mini"


def edit(folder: pathlib.Path, **changes: Any) -> None:
    path = folder / "table.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_what_is_written_is_read(folder: pathlib.Path) -> None:
    made, read = solver.solve_in_memory(MINI), Table.open(folder, MINI, verify=True)
    assert isinstance(read.values, np.memmap)
    assert not read.values.flags.writeable
    assert np.abs(read.values - made.values).max() < 1e-5  # threads may differ in the last digits
    assert read.header.residual <= solver.TOLERANCE
    assert sorted(path.name for path in folder.iterdir()) == ["table.json", "values.npy"]
    assert [path.name for path in folder.parent.iterdir()] == ["mini"]


def test_writing_replaces_what_is_there(folder: pathlib.Path) -> None:
    read = Table.open(folder, MINI)
    (folder / "partial").mkdir()
    write_table(folder, read.header, np.asarray(read.values).copy())
    Table.open(folder, MINI, verify=True)
    assert [path.name for path in folder.parent.iterdir()] == ["mini"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format_version": 2}, "format version 2, this package reads 1"),
        ({"game": "yut_nori"}, "made for 'yut_nori', not for 'puluc'"),
        ({"rules_version": 99}, "other rules of puluc, version: 99, not 1"),
        ({"index_version": 99}, "other numbering, version: 99, not 1"),
        ({"index": "other"}, "other numbering: 'other', not 'puluc'"),
        ({"count": 983}, "other number of positions: 983, not 984"),
        ({"count": "984"}, "field 'count' has the wrong type"),
        ({"rules_version": True}, "field 'rules_version' has the wrong type"),
        ({"options": {"length": 11}}, "other options"),
        ({"kind": "distance"}, "kind 'distance' with numbers of type 'float32' is unknown"),
        ({"dtype": "object"}, "kind 'expectation' with numbers of type 'object' is unknown"),
        ({"dtype": "uint16"}, r"it holds float32 \(984,\), not uint16 \(984,\)"),
        ({"more": 1}, "its fields are not"),
        ({"kind": "distance", "dtype": "int16"}, "other kind of values: 'distance', not 'expectation'"),
        ({"part": "ending"}, "puluc is solved whole; it has no part 'ending'"),
        ({"residual": float("nan")}, "its residual is nan"),
        ({"residual": float("inf")}, "its residual is inf"),
        ({"residual": -1e-9}, "its residual is -1e-09"),
        ({"residual": 10**400}, "its residual is 1000"),
        ({"game": "\x1b[31m\nred"}, r"made for '\\x1b\[31m\\nred'"),
    ],
)
def test_headers_that_do_not_fit_are_refused(folder: pathlib.Path, changes: dict[str, Any], message: str) -> None:
    edit(folder, **changes)
    with pytest.raises(TableError, match=message) as caught:
        Table.open(folder, MINI)
    assert str(folder) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "[1]", "{", "[" * 100_000, '{"a": NaN}'])
def test_headers_that_are_none_are_refused(folder: pathlib.Path, text: str) -> None:
    (folder / "table.json").write_text(text)
    with pytest.raises(TableError, match=r"table\.json"):
        Table.open(folder, MINI)


def test_damaged_values_are_refused(folder: pathlib.Path) -> None:
    path = folder / "values.npy"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    Table.open(folder, MINI)
    with pytest.raises(TableError, match="checksum"):
        Table.open(folder, MINI, verify=True)
    for broken in (data[:-4], data[:10], b"", data + bytes(4), data + bytes(2_000_000)):
        path.write_bytes(broken)
        with pytest.raises(TableError, match=r"values\.npy"):
            Table.open(folder, MINI)


@pytest.mark.parametrize(
    "start",
    [
        b"PK\3\4",  # a zip archive to numpy
        b"\x93NUMPY\1\0\x76\0" + b"{" * 118,
        b"\x93NUMPY\1\0\x76\0" + b"(" * 118,
        b"\x93NUMPY\1\0\x76\0" + b"{'descr': [('f', '<f4', -1)], 'fortran_order': False, 'shape': (984,)}".ljust(118),
        b"\x93NUMPY\1\0\x76\0"
        + b"{'descr': '<f4', 'fortran_order': False, 'shape': (9999999999999999999999,)}".ljust(118),
        b"\x93NUMPY\1\0\x76\0" + b"{'descr': '<f4', 'fortran_order': False, 'shape': (-984,)}".ljust(118),
        b"\x93NUMPY\1\0\x76\0" + b"{'descr': '<f4', 'fortran_order': False, 'shape': 984}".ljust(118),
        b"\x93NUMPY\1\0\x76\0" + b"{'descr': '<f4', 'fortran_order': False, 'shape': (984,), 5: 6}".ljust(118),
        b"\x93NUMPY\1\0\x76\0" + b"{'descr': {1}, 'fortran_order': False, 'shape': (984,)}".ljust(118),
        b"\x93NUMPY\1\0\x76\0" + b'"""'.ljust(118),
        b"\x93NUMPY\3\0\xff\xff\xff\xff",
        b"\x93NUMPY\2\0\xff\xff\xff\x7f",
        b"\x93NUMPY\7\0",
    ],
)
def test_damaged_headers_of_values_are_refused(folder: pathlib.Path, start: bytes) -> None:
    path = folder / "values.npy"
    path.write_bytes(start + path.read_bytes()[len(start) :])
    with pytest.raises(TableError, match=r"values\.npy: .*; make the table again with tradgames solve --again$"):
        Table.open(folder, MINI)


def test_values_are_data_only(folder: pathlib.Path) -> None:
    np.save(folder / "values.npy", np.array([print] * 984, object), allow_pickle=True)
    with pytest.raises(TableError, match=r"values\.npy"):
        Table.open(folder, MINI)


def test_links_and_missing_files_are_refused(folder: pathlib.Path) -> None:
    (folder / "values.npy").rename(folder / "elsewhere.npy")
    with pytest.raises(TableError, match="cannot be read"):
        Table.open(folder, MINI)
    (folder / "values.npy").symlink_to(folder / "elsewhere.npy")
    with pytest.raises(TableError, match="not a plain file"):
        Table.open(folder, MINI)


def test_fixed_point_values(folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solver, "COARSE", 1)
    exact, coarse = Table.open(folder, MINI), solver.solve(MINI, folder=folder.parent / "coarse")
    assert coarse.values.dtype == np.uint16
    assert 1.5e-5 < coarse.header.residual < 1.7e-5
    assert np.abs(coarse.expectations(coarse.values) - exact.values).max() < 1.6e-5


def test_labels_name_what_the_values_depend_on() -> None:
    def label(game: str, variant: str = "box", **options: Any) -> str:
        ruleset = load_ruleset(game, variant, **options)
        return table_label(ruleset, load_index(ruleset))

    assert label("puluc") == label("puluc", max_turns=50, first_player="black") == "box"
    assert label("puluc", length=7, pieces=2) == label("puluc", "family", pieces=2) == "mini"
    assert label("puluc", pieces=4) == "box+pieces=4"
    assert label("yut_nori", "teams") == "box"
    assert label("yut_nori", "box", pieces=1, stick_p=0.6) == "mini+stick_p=0.6"


def test_tables_are_found_in_the_named_folder(folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(table.FOLDER_VARIABLE, str(folder.parent / "tables"))
    assert find_table(MINI) is None
    solver.solve(MINI)
    found = find_table(load_ruleset("puluc", "box", pieces=2, length=7))
    assert found is not None
    assert found.folder == folder.parent / "tables" / "puluc" / "mini"
    monkeypatch.delenv(table.FOLDER_VARIABLE)
    assert table.tables_folder().parts[-2:] == ("tradgames_env", "tables")


@pytest.mark.parametrize("value", [np.inf, np.nan, 7.0, -1.5])
def test_values_that_cannot_be_are_refused(folder: pathlib.Path, value: float) -> None:
    values = np.array(Table.open(folder, MINI).values)
    values[:] = value
    write_table(folder, describe(MINI, load_index(MINI), None, values, 0.0, {}), values)
    read, position = Table.open(folder, MINI), Position.from_ruleset(MINI)
    with pytest.raises(TableError, match=r"values\.npy: it holds the value .*, which is not from -1 to 1; make"):
        judge_moves(read, *position.rows)
    with pytest.raises(TableError, match="which is not from -1 to 1"):
        read.value(start_of(read))
    with pytest.raises(TableError, match="which is not from -1 to 1"):
        Table.open(folder, MINI, verify=True)


def test_distances_that_cannot_be_are_refused(tmp_path: pathlib.Path) -> None:
    made = solver.solve_in_memory(load_ruleset("yote", "mini", pieces=1))
    values = made.values.copy()
    for value, sound in ((-32_768, True), (-32_767, True), (-32_766, False), (-32_000, True), (32_001, False)):
        values[0] = value
        header = describe(made.ruleset, made.index, None, values, 0.0, {})
        write_table(tmp_path / "yote", header, values)
        if sound:
            Table.open(tmp_path / "yote", made.ruleset, verify=True)
            continue
        with pytest.raises(TableError, match=r"values\.npy: it holds distances beyond 32000; make"):
            Table.open(tmp_path / "yote", made.ruleset, verify=True)


def test_a_table_in_the_folder_of_another_part(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(table.FOLDER_VARIABLE, str(tmp_path))
    ruleset = load_ruleset("yote", "mini")
    made = solver.solve(ruleset, "endings-1v1")
    assert made.folder is not None
    other = made.folder.with_name("mini-endings-1v2")
    shutil.copytree(made.folder, other)
    with pytest.raises(TableError, match=r"1v2.table\.json: it was made for endings-1v1, not for endings-1v2; make"):
        find_table(ruleset, "endings-1v2")
    with pytest.raises(TableError, match="not for endings-1v2"):
        find_endings(ruleset)
    shutil.copytree(made.folder, made.folder.with_name("mini"))
    with pytest.raises(TableError, match="it was made for endings-1v1, not for the whole game"):
        find_table(ruleset)


def test_a_full_disk_is_told_with_the_file(folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    read = Table.open(folder, MINI)
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"No space left on device: '.*values\.npy'"):
        write_table(folder, read.header, read.values)
    assert [path.name for path in folder.parent.iterdir()] == ["mini"]
