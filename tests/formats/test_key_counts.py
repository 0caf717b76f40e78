"""Counts of keys from CSV and JSON lines, with the place of each fault."""

from __future__ import annotations

from pathlib import Path

import pytest

from headway.errors import InputError
from headway.formats.key_counts import read_key_counts


def written(folder: Path, text: str) -> Path:
    path = folder / "keys.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_csv_and_json_lines_say_the_same(tmp_path: Path) -> None:
    comma = read_key_counts(written(tmp_path, 'count,key,note\n1,b,x\n\n7,"a,c",y\n0,z,\n'))
    assert (comma.keys, comma.num_rows) == (("a,c", "b"), (7.0, 1.0))
    assert (comma.kind, comma.other_rows) == ("string", 0.0)
    lines = '{"key":"b","count":1}\n\n{"key":"a,c","count":7}\n'
    assert read_key_counts(written(tmp_path, lines)) == comma


def test_numbers_of_json_are_long_and_those_of_csv_text(tmp_path: Path) -> None:
    lines = written(tmp_path, '{"key":12,"count":1}\n')
    assert read_key_counts(lines).kind == "long"
    assert read_key_counts(lines, kind="int").keys == (12,)
    comma = written(tmp_path, "key,count\n12,1\n")
    assert read_key_counts(comma).keys == ("12",)
    assert read_key_counts(comma, kind="int").keys == (12,)


def test_rows_of_keys_that_are_not_listed(tmp_path: Path) -> None:
    path = written(tmp_path, "key,count\na,7\nb,1\n")
    assert read_key_counts(path, total_rows=10.0).other_rows == 2.0
    with pytest.raises(InputError, match=r"8 rows are counted, more than the 5 of all keys"):
        read_key_counts(path, total_rows=5.0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("key,rows\na,1\n", r":1: no column 'count'; expected a CSV file"),
        ("name,count\na,1\n", r":1: no column 'key'"),
        ("key,count\na\n", r":2: 1 values; expected 2"),
        ("key,count\na,1\na,2\n", r":3: key 'a' is there twice"),
        ("key,count\na,x\n", r":2: count is 'x'; expected a number, 0 or more"),
        ("key,count\na,-1\n", r":2: count is '-1'"),
        ("key,count\na,nan\n", r":2: count is 'nan'"),
        ("key,count\n,5\n", r":2: no key; rows without one"),
        ("key,count\na,0\n", r"no key with a count above 0"),
        ('{"key":"a","count":1}\n{"key":\n', r":2: not a JSON object on one line"),
        ('{"key":"a"}\n', r":1: no count"),
        ('{"count":1}\n', r":1: no key"),
        ('{"key":null,"count":1}\n', r":1: no key; rows without one"),
        ('{"key":"a","count":1}\n{"key":3,"count":1}\n', r":2: key 3 is no text"),
        ('{"key":1,"count":1}\n{"key":"x","count":1}\n', r":2: key 'x' is no long"),
        ('{"key":1.5,"count":1}\n', r":1: key 1.5 is no text"),
        ("", r"the file is empty"),
    ],
)
def test_faults_have_a_place(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=said):
        read_key_counts(written(tmp_path, text))


def test_a_key_that_does_not_fit_its_type(tmp_path: Path) -> None:
    path = written(tmp_path, f"key,count\n{2**31},1\n")
    with pytest.raises(InputError, match=r":2: key '2147483648' is no int"):
        read_key_counts(path, kind="int")
    assert read_key_counts(path, kind="long").keys == (2**31,)
    with pytest.raises(InputError, match=r"key type is 'date'; expected one of string, int, long"):
        read_key_counts(path, kind="date")
