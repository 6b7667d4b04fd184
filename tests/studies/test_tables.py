"""Data sets that are tables: what is read, and what is refused."""

import gzip
import struct

import numpy as np
import pytest

from earshot_models.datasets.dataset import DatasetError
from earshot_protocol.errors import InvalidInputError
from earshot_studies.muehl import adult, mnist
from earshot_studies.muehl.table import Table


def idx(array):
    header = struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)
    return header + array.astype(np.uint8).tobytes()


@pytest.fixture
def digits(tmp_path):
    random = np.random.default_rng(0)
    images = {part: random.integers(0, 256, (6, 5, 4)) for part in ("train", "t10k")}
    for part, each in images.items():
        (tmp_path / f"{part}-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(each)))
        (tmp_path / f"{part}-labels-idx1-ubyte").write_bytes(idx(np.arange(6)))
    return tmp_path, images


def test_digits_are_read_packed_or_not(digits):
    folder, images = digits
    split = mnist.load(folder)
    assert split.train.rows.shape == (6, 5, 4, 1)
    np.testing.assert_allclose(split.test.rows[..., 0] * 255, images["t10k"], atol=1e-4)
    assert split.train.labels.tolist() == [0, 1, 2, 3, 4, 5]
    assert split.train.classes[5] == "5"


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("train-images-idx3-ubyte.gz", b"no gzip", "cannot be read"),
        ("train-images-idx3-ubyte.gz", gzip.compress(idx(np.zeros(3))), "not an IDX file"),
        ("train-images-idx3-ubyte.gz", gzip.compress(idx(np.zeros((6, 5, 4)))[:-1]), "length"),
        ("train-images-idx3-ubyte.gz", gzip.compress(idx(np.zeros((5, 5, 4)))), "5 images for 6"),
        ("t10k-labels-idx1-ubyte", idx(np.full(6, 10)), "label 10"),
    ],
    ids=["no gzip", "no IDX", "too short", "too few", "no digit"],
)
def test_files_that_are_no_digits_are_refused(digits, name, content, said):
    folder, _ = digits
    (folder / name).write_bytes(content)
    with pytest.raises(DatasetError, match=said):
        mnist.load(folder)


def test_a_missing_file_is_named(digits):
    folder, _ = digits
    (folder / "t10k-labels-idx1-ubyte").unlink()
    with pytest.raises(DatasetError, match="t10k-labels-idx1-ubyte"):
        mnist.load(folder)


ROW = "{}, Private, 100, Bachelors, 13, Divorced, Sales, Wife, White, Male, 0, 0, {}, {}, {}\n"


@pytest.fixture
def census(tmp_path):
    (tmp_path / "adult-train.csv").write_text(
        ROW.format(20, 10, "Peru", "<=50K")
        + ROW.format(40, 30, "Cuba", ">50K")
        + ROW.format("?", 30, "Cuba", ">50K")
    )
    (tmp_path / "adult-test.csv").write_text(
        "|1x3 Cross validator\n" + ROW.format(60, 20, "Iran", ">50K.") + "\n"
    )
    return tmp_path


def test_incomplete_people_are_left_out_and_columns_scaled_over_both_parts(census):
    split = adult.load(census)
    assert split.train.labels.tolist() == [0, 1]
    assert split.test.labels.tolist() == [1]
    age, hours, country = (adult.COLUMNS.index(name) for name in
                           ("age", "hours-per-week", "native-country"))  # fmt: skip
    np.testing.assert_allclose(split.train.rows[:, [age, hours]], [[0, 0], [0.5, 1]])
    np.testing.assert_allclose(split.test.rows[0, [age, hours]], [1, 0.5])
    # Cuba, Iran, Peru in alphabetical order.
    assert split.train.rows[:, country].tolist() == [1, 0]
    assert split.test.rows[0, country] == 0.5
    # A column in which all are alike says nothing.
    assert not split.train.rows[:, adult.COLUMNS.index("sex")].any()


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("1, 2, 3\n", "3 columns"),
        (ROW.format("old", 1, "Peru", ">50K"), "column age"),
        (ROW.format("inf", 1, "Peru", ">50K"), "finite"),
        (ROW.format(1, 1, "Peru", "rich"), "'rich'"),
    ],
)
def test_rows_that_are_no_people_are_refused(census, row, said):
    (census / "adult-test.csv").write_text(row)
    with pytest.raises(DatasetError, match=said):
        adult.load(census)


def test_a_file_without_a_complete_row_is_refused(census):
    (census / "adult-test.csv").write_text(ROW.format("?", 1, "Peru", ">50K"))
    with pytest.raises(DatasetError, match="no complete row"):
        adult.load(census)


def test_tables_are_joined_and_cut():
    one = Table(np.zeros((2, 3), np.float32), np.array([0, 1]), ("a", "b"))
    both = one.joined(Table(np.ones((1, 3), np.float32), np.array([1]), ("a", "b")))
    assert both.labels.tolist() == [0, 1, 1]
    assert both.at(np.array([2])).rows.tolist() == [[1, 1, 1]]
    with pytest.raises(InvalidInputError, match="cannot be joined"):
        one.joined(Table(one.rows, one.labels, ("a", "c")))
    with pytest.raises(InvalidInputError, match="from 0 to 2"):
        Table(np.zeros((2, 3), np.float32), np.array([0, 2]), ("a", "b"))
    with pytest.raises(InvalidInputError, match="each row needs one label"):
        Table(np.zeros((2, 3), np.float32), np.array([0]), ("a", "b"))
