"""Counts of keys from CSV and JSON lines, with the place of each fault."""

from __future__ import annotations

from pathlib import Path

import pytest

from headway.errors import InputError
from headway.formats.key_counts import read_key_counts, read_shares


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


def test_a_key_may_hold_what_some_take_for_a_line_end(tmp_path: Path) -> None:
    for text in ('{"key": "a\u2028b", "count": 7}', "key,count\na\u2028b,7"):
        assert read_key_counts(written(tmp_path, text)).keys == ("a\u2028b",)


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
        ("\ufeff", r":1: no column 'count'"),
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


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the file is empty"),
        ("key,share\n", "0 keys"),
        ("key,rows\na,3\n", ":1: no column 'count'"),
        ("key,share\na,many\n", ":2: share is 'many'"),
        ("key,share\na,0.5\nb,1.5\n", ":3: share is '1.5'; expected more than 0, up to 1"),
        ("key,share\na,0.5\na,0.1\n", ":3: key 'a' is there twice"),
        ("key,share\na,0.7\nb,0.7\n", "add up to 1.4"),
        ('{"key":null,"share":0.5}\n', ":1: no key; leave rows without one out"),
        ('{"key":"a","share":0.4}\n{"key":"b","count":7}\n', ":2: count is given, but a share"),
    ],
)
def test_shares_are_checked(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_shares(written(tmp_path, text))


def test_one_file_serves_the_advice_and_the_query(tmp_path: Path) -> None:
    """What `headway ordered --keys` reads can be given to `headway.ordered(place=...)` as it is."""
    shares = written(tmp_path, 'key,share,bucket\n"a, b",0.25,3\n,0.5,1\n')
    assert read_shares(shares) == {"a, b": 0.25, "": 0.5}
    counts = written(tmp_path, "key,count\na,3\nb,1\nc,0\n")
    assert read_shares(counts) == {"a": 0.75, "b": 0.25}
    assert read_key_counts(counts).num_rows == (3.0, 1.0)
    assert read_shares(written(tmp_path, '{"key":12,"count":8}\n')) == {"12": 1.0}
