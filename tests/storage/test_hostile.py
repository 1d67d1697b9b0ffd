"""Files with a right checksum that are made to do harm: refused, or a model that predicts."""

import re
import tracemalloc

import numpy as np
import pytest

from mixnorm import ShareBoostClassifier, ShareBoostRegressorCV
from mixnorm.exceptions import ModelFileError

MODEL = ("model", "estimator")
OPTIONS = (*MODEL, "params", "options", "dataclass", "fields")
STATE = (*MODEL, "state")
LEARNED = (*STATE, "model_", "dataclass", "fields")
PATH = (*LEARNED, "path", "dataclass", "fields")
POOL = (*LEARNED, "pool", "dataclass", "fields")
INPUTS = (*LEARNED, "inputs", "dataclass", "fields")
OUTPUTS = (*LEARNED, "outputs", "dataclass", "fields")
LOSS = (*OUTPUTS, "loss", "dataclass")
ROUND = (*PATH, "rounds", "tuple", 2, "dataclass", "fields")
GONE = "<gone>"  # as tools.edited understands it


@pytest.fixture(scope="module")
def whole(tools, content):
    return tools.opened(content)


def refused(tools, whole, *edits, match=""):
    document, raw = whole
    with pytest.raises(ModelFileError, match=f"^the file .*{match}"):
        tools.read(tools.forged(tools.edited(document, *edits), raw))


def test_an_unedited_forgery_is_read(tools, whole, model, digits):
    document, raw = whole
    found = tools.read(tools.forged(tools.edited(document), raw))
    assert tools.same(model.predict(digits[0]), found.predict(digits[0]))


# --- one thing wrong


ARRAY = ("arrays", 3)  # the weights of the first round
WRONG = [
    # the document
    (("model",), GONE, "other entries"),
    (("arrays",), GONE, "other entries"),
    (("mixnorm",), GONE, "other entries"),
    (("more",), 1, "other entries"),
    (("model",), None, "NoneType instead of a model"),
    (("model",), [], "list instead of a model"),
    (("model",), {"dict": []}, "instead of a model|belongs to nothing"),
    (("model",), {"dataclass": {"class": "losses.Squared", "fields": {}}}, ""),
    (("model",), {}, "0 kinds"),
    (("model",), {"tuple": [], "dict": []}, "2 kinds"),
    (("model",), {"pickle": "gASVAAAA"}, "unknown kind 'pickle'"),
    (("model",), {"array": 0}, ""),
    # arrays
    (("arrays",), {}, "described by a list"),
    (("arrays", 0), GONE, "shape|runs over|array"),
    ((*ARRAY, "dtype"), GONE, "dtype, shape and order"),
    ((*ARRAY, "offset"), 0, "dtype, shape and order"),
    ((*ARRAY, "order"), "A", "neither 'C' nor 'F'"),
    ((*ARRAY, "order"), ["C"], "neither 'C' nor 'F'"),
    *[
        ((*ARRAY, "dtype"), dtype, "is not a dtype")
        for dtype in ["O", "|O", "object", "<c16", ">f8", "=f8", "f8", "<f16", "<V8", "|S8", "<U0",
                      "<f8,<f8", [["a", "<f8"]], None, 8, "<M8[0s]", "<M8[fortnight]", "<f8 ",
                      "<U99999999999"]
    ],
    ((*ARRAY, "dtype"), "<U999999999", ""),
    ((*ARRAY, "dtype"), "<f4", "bytes"),
    ((*ARRAY, "dtype"), "<i8", "floats"),
    *[
        ((*ARRAY, "shape"), shape, "")
        for shape in [None, 10, "10", [], [-1, 10], [1, -10], [1.0, 10], [True, 10], [10, 1], [10],
                      [1, 11], [2**62, 4], [2**31, 2**31], [2**64, 0], [0, 10**15], [10**4000],
                      [1] * 40, [[1, 10]], [None, 10], [1, 10, 1]]
    ],
    # names
    ((*MODEL, "class"), "ShareBoost", "'ShareBoost', and this mixnorm has no estimator"),
    ((*MODEL, "class"), "BaseShareBoost", "this mixnorm has no estimator"),
    ((*MODEL, "class"), ["ShareBoostClassifier"], "this mixnorm has no estimator"),
    ((*MODEL, "class"), None, "this mixnorm has no estimator"),
    ((*MODEL, "class"), "ShareBoostRegressor", ""),
    ((*MODEL, "kind"), 1, "entries"),
    ((*MODEL, "state"), GONE, "entries"),
    ((*MODEL, "params"), [], "list|dict"),
    ((*MODEL, "state"), [], "dict"),
    ((*MODEL, "state"), None, "belongs to nothing|not fitted"),
    # parameters
    ((*MODEL, "params", "depth"), 3, "has no 'depth'"),
    ((*MODEL, "params", "self"), 3, "has no 'self'"),
    ((*MODEL, "params", "random_state"), float("nan"), "NaN is not a JSON number"),
    ((*MODEL, "params", "alpha"), "big", "alpha='big' must be a number"),
    ((*MODEL, "params", "alpha"), -1.0, "alpha=-1.0 must be at least 0"),
    ((*MODEL, "params", "alpha"), {"float": "nan"}, "alpha=nan"),
    ((*OPTIONS, "max_iter"), {"float": "nan"}, "GreedyOptions.max_iter must be"),
    ((*OPTIONS, "rule"), {"dict": []}, "GreedyOptions.rule must be"),
    ((*MODEL, "params", "pool"), {"dict": []}, "is not a pool"),
    ((*OPTIONS, "scale"), "yes", "choose 'std', 'max' or False"),
    # plain values
    ((*OPTIONS, "tol"), {"float": "1.0"}, "neither nan nor infinite"),
    ((*OPTIONS, "tol"), {"float": 1.0}, "neither nan nor infinite"),
    ((*OPTIONS, "swaps"), {"int": "12"}, "hexadecimal"),
    ((*OPTIONS, "swaps"), {"int": 12}, "hexadecimal"),
    ((*OPTIONS, "swaps"), {"int": "0x1_0"}, "hexadecimal"),
    ((*MODEL, "params", "loss"), {"str": [0x110000]}, "range"),
    ((*MODEL, "params", "loss"), {"str": "margin"}, "stands where a list must be"),
    ((*MODEL, "params", "loss"), {"tuple": {}}, "stands where a list must be"),
    ((*MODEL, "params", "loss"), {"dict": {}}, "stands where a list must be"),
    ((*MODEL, "params", "loss"), {"dict": [[1]]}, ""),
    ((*MODEL, "params", "loss"), {"dict": ["ab"]}, "stands where a list must be"),
    ((*MODEL, "params", "loss"), {"dict": [[1, 2], [1, 3]]}, "one key twice"),
    ((*MODEL, "params", "loss"), {"dict": [[[1], 2]]}, "unhashable"),
    ((*MODEL, "params", "loss"), {"array": 99}, "which it does not hold"),
    ((*MODEL, "params", "loss"), {"array": -1}, "which it does not hold"),
    ((*MODEL, "params", "loss"), {"array": 0}, "two values"),
    ((*MODEL, "params", "loss"), {"array": True}, "which it does not hold"),
    ((*MODEL, "params", "loss"), {"array": 1e308}, "which it does not hold"),
    ((*MODEL, "params", "loss"), {"scalar": {"dtype": "<f8", "bytes": "00"}}, "has 1 bytes"),
    ((*MODEL, "params", "loss"), {"scalar": {"dtype": "O", "bytes": "00"}}, "is not a dtype"),
    ((*MODEL, "params", "loss"), {"scalar": {"dtype": "<f8", "bytes": "no"}}, ""),
    ((*MODEL, "params", "loss"), {"scalar": {"dtype": "|b1", "bytes": "02"}}, "truth values"),
    ((*MODEL, "params", "loss"), {"scalar": {"dtype": "<U1", "bytes": "ffffffff"}}, "character"),
    ((*MODEL, "params", "loss"), {"objects": {"shape": [2], "items": [1]}}, ""),
    ((*MODEL, "params", "loss"), {"objects": {"shape": [-1], "items": [1]}}, "at least zero"),
    ((*MODEL, "params", "loss"), {"objects": {"shape": [2**40, 2**40], "items": []}}, ""),
    ((*MODEL, "params", "loss"), {"objects": {"items": [1]}}, "entries"),
    # objects
    ((*PATH, "rounds"), GONE, "rounds"),
    ((*PATH, "rounds"), [], "Path.rounds must be"),
    ((*PATH, "rounds"), {"tuple": [1, 2]}, "Path.rounds must be"),
    ((*PATH, "more"), 1, "Path has no 'more'"),
    ((*PATH, "null_loss"), "low", "Path.null_loss must be"),
    ((*PATH, "null_intercept"), 3.0, "intercept without features"),
    ((*PATH, "interrupted"), 1, "Path.interrupted must be"),
    ((*STATE, "model_"), GONE, "'model_' of ShareBoostClassifier is missing"),
    ((*STATE, "model_"), None, "'model_' of ShareBoostClassifier is missing, or of another kind"),
    ((*STATE, "model_", "dataclass", "class"), "models.OneVsRestModel", "has no 'path'"),
    ((*STATE, "report_"), None, "'report_' of ShareBoostClassifier"),
    ((*STATE, "search_"), None, "'search_' of ShareBoostClassifier"),
    ((*STATE, "_resume"), 5, "'_resume' of ShareBoostClassifier"),
    ((*STATE, "_sklearn_output_config"), {"dict": [["transform", "code"]]}, "_output_config"),
    ((*LEARNED, "path"), None, "PathModel.path must be"),
    ((*LEARNED, "path"), GONE, "path"),
    ((*LEARNED, "inputs"), None, "PathModel.inputs must be"),
    ((*LEARNED, "outputs"), None, "PathModel.outputs must be"),
    ((*LEARNED, "outputs", "dataclass", "class"), "models.NumberOutputs", "no 'classes'"),
    ((*LEARNED, "more"), 1, "PathModel has no 'more'"),
    ((*LEARNED, "coef"), 1, "PathModel has no 'coef'"),
    ((*ROUND, "atom"), 64, "atom 64 lies outside the 64 columns"),
    ((*ROUND, "atom"), -1, "whole numbers from 0 up"),
    ((*ROUND, "atom"), 2**80, ""),
    ((*ROUND, "atom"), {"float": "nan"}, "whole numbers from 0 up"),
    ((*ROUND, "atom"), 1.5, "whole numbers from 0 up"),
    ((*ROUND, "atom"), [1], "whole numbers from 0 up"),
    ((*ROUND, "support"), {"tuple": [26, 42, [1]]}, "whole numbers|unhashable"),
    ((*ROUND, "support"), {"tuple": []}, "no atoms"),
    ((*ROUND, "support"), {"tuple": [1, 2]}, "rows of weights"),
    ((*ROUND, "support"), {"tuple": [1, 1, 2]}, "twice"),
    ((*ROUND, "support"), {"tuple": [1, 2, 64]}, "outside"),
    ((*ROUND, "support"), {"tuple": [1, 2, "3"]}, "whole numbers from 0 up"),
    ((*ROUND, "support"), {"tuple": [2, 3, True]}, "whole numbers from 0 up"),
    ((*ROUND, "support"), {"tuple": [26, 42, 21.0]}, "whole numbers from 0 up"),
    ((*ROUND, "support"), [1, 2, 3], "Round.support must be"),
    ((*ROUND, "loss"), None, "Round.loss must be"),
    ((*ROUND, "iterations"), {"float": "nan"}, "Round.iterations must be"),
    ((*ROUND, "weights"), [[0.0] * 10] * 3, "weights of a round"),
    ((*POOL, "groups"), [1, 2], "2 labels"),
    ((*POOL, "groups"), [None] * 64, "missing labels"),
    ((*POOL, "groups"), [[]] * 64, "unhashable"),
    ((*POOL, "groups"), [0] * 64, ""),
    ((*POOL, "groups"), 5, ""),
    ((*LEARNED, "pool"), 5, ""),
    ((*LEARNED, "pool"), GONE, ""),
    ((*OUTPUTS, "loss"), "margin", ""),
    ((*OUTPUTS, "loss"), None, ""),
    ((*LOSS, "class"), "losses.Squared", ""),
    ((*LOSS, "fields", "margin"), "x", "MarginSoftmax.margin must"),
    ((*LOSS, "fields", "margin"), 1e9, "margin=1000000000.0 must"),
    ((*LOSS, "fields", "margin"), {"float": "nan"}, "margin=nan"),
    ((*INPUTS, "n_features"), GONE, ""),
    ((*INPUTS, "n_features"), 0, "whole number from 1 up"),
    ((*INPUTS, "n_features"), -5, "whole number from 1 up"),
    ((*INPUTS, "n_features"), 3, "outside the 3 columns"),
    ((*INPUTS, "n_features"), 64.0, "Inputs.n_features must be"),
    ((*INPUTS, "n_features"), True, "Inputs.n_features must be"),
    ((*INPUTS, "n_features"), 10**12, "takes too much memory"),
    ((*INPUTS, "n_features"), 10**40, "takes too much memory"),
    (
        (*INPUTS, "n_features"),
        {"scalar": {"dtype": "<i8", "bytes": "0000000000000040"}},
        "whole number from 1 up",
    ),
    ((*INPUTS, "names"), ["a"] * 64, "Inputs.names must be"),
    ((*INPUTS, "names"), {"tuple": ["a", "b"]}, "64 names"),
    ((*INPUTS, "names"), {"tuple": [1] * 64}, "Inputs.names must be"),
    ((*OUTPUTS, "classes"), list(range(10)), "ClassOutputs.classes must be"),
    ((*OUTPUTS, "classes"), {"objects": {"shape": [2], "items": [0, 1]}}, "classes_ must be"),
    ((*OUTPUTS, "unit"), 2.0, "ClassOutputs has no 'unit'"),
    ((*OUTPUTS, "centre"), {"float": "nan"}, "ClassOutputs has no 'centre'"),
    # attributes that hide something
    *[
        ((*STATE, name), 1, "of ShareBoostClassifier is missing, or of another kind")
        for name in ["__class__", "__dict__", "__init__", "__reduce__", "__getattr__", "predict",
                     "fit", "_scores", "_libraries", "coef_", "n_features_in_", "classes_",
                     "get_params", "alpha", "options", "set_output",
                     "not a name", "", "a.b", "__x", "_repr_html_", "_skl_callbacks",
                     "_metadata_request", "_callback_fit_ctx"]
    ],
]  # fmt: skip


@pytest.mark.parametrize(
    ("place", "value", "match"), WRONG, ids=lambda part: re.sub(r"\W+", ".", str(part))[:60]
)
def test_one_thing_wrong(tools, whole, place, value, match):
    refused(tools, whole, (place, value), match=match)


SEARCH = (*STATE, "search_", "dataclass", "fields")
REGRESSOR = [
    ((*OUTPUTS, "unit"), 0.0, "unit"),
    ((*OUTPUTS, "unit"), {"float": "inf"}, "unit"),
    ((*OUTPUTS, "unit"), "1", "unit"),
    ((*OUTPUTS, "single"), True, "single is True"),
    ((*OUTPUTS, "single"), 0, "NumberOutputs.single must be"),
    ((*OUTPUTS, "single"), GONE, "single"),
    ((*OUTPUTS, "centre"), 0.0, "centre"),
    ((*OUTPUTS, "centre"), GONE, "centre"),
    ((*LOSS, "class"), "losses.MultinomialLogistic", "is not a loss for numbers"),
    ((*OUTPUTS, "loss"), None, ""),
    ((*STATE, "search_"), GONE, "'search_' of ShareBoostRegressorCV is missing"),
    ((*STATE, "search_"), {"dict": []}, "'search_' of ShareBoostRegressorCV"),
    ((*SEARCH, "best_index"), "high", "SearchResult.best_index must be"),
    ((*SEARCH, "best_index"), 10**6, "best_index_ must be the row of a candidate"),
    ((*SEARCH, "chains"), [], "SearchResult.chains must be"),
    ((*SEARCH, "cv_results"), [], "SearchResult.cv_results must be"),
    ((*SEARCH, "cv_results"), {"dict": [["alpha", "x"]]}, ""),
    ((*SEARCH, "cv_results"), {"dict": []}, "the columns params and mean_test_score"),
    ((*SEARCH, "more"), 1, "SearchResult has no 'more'"),
]


@pytest.mark.parametrize(("place", "value", "match"), REGRESSOR)
def test_one_thing_wrong_in_a_regressor(tools, digits, place, value, match):
    X, _ = digits
    model = ShareBoostRegressorCV(3, cv=2).fit(X, X[:, 20:22] ** 2)
    whole = tools.opened(tools.packed(model))
    refused(tools, whole, (place, value), match=match)


def test_missing_parameters_take_their_defaults(tools, whole, digits, model):
    # So that a file can be read by a later version, whose estimators have more parameters.
    document, raw = whole
    found = tools.read(tools.forged(tools.edited(document, ((*OPTIONS, "swaps"), GONE)), raw))
    assert found.options.swaps == 0
    assert tools.same(found.predict(digits[0]), model.predict(digits[0]))


def test_an_estimator_that_is_not_fitted(tools, whole):
    document, _ = whole
    document = tools.edited(document, (STATE, None), (("arrays",), []))
    with pytest.raises(ModelFileError, match="not fitted yet"):
        tools.read(tools.forged(document))


def test_a_file_of_another_version_says_so(tools, whole):
    refused(tools, whole, (("mixnorm",), "9.9"), (("model",), None), match="mixnorm '9.9' wrote it")
    refused(tools, whole, (("mixnorm",), ["9.9"]), (("model",), None), match="another copy")


def test_more_memory_on_request(tools, whole, digits, model):
    document, raw = whole
    size = 8 * 64 * 10
    assert tools.read(tools.forged(document, raw), max_bytes=size).coef_.shape == (10, 64)
    with pytest.raises(ModelFileError, match=f"takes {size} bytes, .* load it with a larger max"):
        tools.read(tools.forged(document, raw), max_bytes=size - 1)


# --- the text


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b"1" * 5000,
        b'{"model": NaN}',
        b'{"model": Infinity, "arrays": []}',
        b'{"model": null, "model": null, "arrays": []}',
        b'{"model": "\xff"}',
        '{"model": "é"}'.encode(),
        b"\xef\xbb\xbf{}",
        b'{"arrays": [], "model": 1} {}',
        b"[" * 10_000 + b"]" * 10_000,
        b"[" * 2_000_000,
        b'{"a":' * 10_000 + b"1" + b"}" * 10_000,
    ],
    ids=range(15),
)
def test_texts(tools, text):
    with pytest.raises(ModelFileError):
        tools.read(tools.forged(text))


def test_keys_that_stand_twice_anywhere(tools, content):
    document, raw = tools.opened(content)
    text = tools.forged(document, raw)
    body = text.split(b"\n", 3)[3]
    twice = body[: len(body) - len(raw)].replace(b'"alpha"', b'"alpha": 1, "alpha"', 1)
    with pytest.raises(ModelFileError, match="twice"):
        tools.read(tools.forged(twice, raw))


@pytest.mark.parametrize("depth", [90, 300, 900, 10_000, 200_000])
@pytest.mark.parametrize(
    ("opening", "closing"), [("[", "]"), ('{"tuple":[', "]}"), ('{"dict":[[1,', "]]}")]
)
def test_deep_nesting(tools, whole, depth, opening, closing):
    document, raw = whole
    marked = tools.edited(document, ((*MODEL, "params", "random_state"), "HERE"))
    text = tools.forged(marked).split(b"\n", 3)[3]
    deep = text.replace(b'"HERE"', (opening * depth + "1" + closing * depth).encode())
    # A value of moderate depth is read, and then refused as a seed.
    words = "random_state=" if depth == 90 else "^(?!.*random_state=)"
    with pytest.raises(ModelFileError, match=words):
        tools.read(tools.forged(deep, raw))


@pytest.mark.parametrize(
    "body", [b"", b"\n", b"5", b"5\n", b"-1\n{}", b"02\n{}", b"+2\n{}", b" 2\n{}", b"2\r\n{}",
             b"9999999999999999999\n{}", b"999999999999\n{}", b"0\n", b"2.0\n{}", b"0x2\n{}"],
)  # fmt: skip
def test_lengths_of_the_document(tools, body):
    with pytest.raises(ModelFileError):
        tools.read(tools.sealed(body))


def test_bytes_left_over_or_missing(tools, whole):
    document, raw = whole
    for other in (raw + b"\0", raw[:-1], raw[1:], b"", raw * 2):
        with pytest.raises(ModelFileError, match="bytes|runs over"):
            tools.read(tools.forged(document, other))


def test_an_array_that_belongs_to_nothing(tools, whole):
    document, raw = whole
    more = tools.edited(document)
    more["arrays"].append({"dtype": "<f8", "shape": [2], "order": "C"})
    with pytest.raises(ModelFileError, match="belongs to nothing"):
        tools.read(tools.forged(more, raw + bytes(16)))


def test_one_array_is_not_many(tools, whole):
    document, raw = whole
    many = tools.edited(document, ((*MODEL, "params", "loss"), [{"array": 0}] * 100_000))
    with pytest.raises(ModelFileError, match="stands for two values"):
        tools.read(tools.forged(many, raw))


def test_strange_bytes_in_arrays(tools, digits):
    X, y = digits
    texts = ShareBoostClassifier(1).fit(X, np.array(["a", "b"])[y % 2])
    document, raw = tools.opened(tools.packed(texts))
    place = document
    for step in (*OUTPUTS, "classes", "array"):
        place = place[step]
    start = sum(
        int(np.prod(each["shape"])) * np.dtype(each["dtype"]).itemsize
        for each in document["arrays"][:place]
    )
    with pytest.raises(ModelFileError, match="not a character"):
        tools.read(tools.forged(document, raw[:start] + b"\xff" * 4 + raw[start + 4 :]))
    truth = tools.edited(
        document, (("arrays", place), {"dtype": "|b1", "shape": [8], "order": "C"})
    )
    with pytest.raises(ModelFileError, match="truth values"):
        tools.read(tools.forged(truth, raw))


def test_refusals_take_no_memory(tools, whole):
    document, raw = whole
    files = [
        tools.forged(tools.edited(document, ((*ARRAY, "shape"), [2**40, 10])), raw),
        tools.forged(tools.edited(document, ((*ARRAY, "dtype"), "<U500000000")), raw),
        tools.forged(tools.edited(document, ((*INPUTS, "n_features"), 2**40)), raw),
        tools.forged(b"[" * 1_000_000),
    ]
    for file in files:
        tracemalloc.start()
        with pytest.raises(ModelFileError):
            tools.read(file)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 10 * len(file) + (1 << 20)
