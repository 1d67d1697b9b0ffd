"""Chosen patches as pictures, on models of the 8 x 8 digits."""

import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError

from mixnorm import (
    OneVsRestGreedy,
    ShareBoostClassifier,
    ShareBoostClassifierCV,
    ShareBoostRegressor,
)
from mixnorm.display import PatchDisplay
from mixnorm.pools import Columns, Patches, Stumps, Union

pyplot = pytest.importorskip("matplotlib.pyplot", exc_type=ImportError)

IMAGES, Y = load_digits(return_X_y=True)
IMAGES, Y = IMAGES[:400].reshape(-1, 8, 8), Y[:400]
POOL = Patches(size=3, n_templates=12, masks=4)


@pytest.fixture(scope="module")
def model():
    return ShareBoostClassifier(5, pool=POOL, random_state=0).fit(IMAGES, Y)


@pytest.fixture(autouse=True)
def close_figures():
    yield
    pyplot.close("all")


def test_three_pictures_for_each_patch(model):
    display = PatchDisplay.from_estimator(model)
    assert display.axes_.shape == (5, 3)
    assert len(display.figure_.axes) == 15, "no axes are left over"
    atoms, pool = model.path_["feature"], model.model_.pool
    for number, (template, mask, bars) in enumerate(display.axes_):
        np.testing.assert_allclose(template.images[0].get_array(), pool.template(atoms[number]))
        seen = np.asarray(mask.images[1].get_alpha())
        np.testing.assert_allclose(seen, 0.75 * pool.mask(atoms[number], 64))
        heights = [bar.get_height() for bar in bars.patches]
        np.testing.assert_allclose(heights, model.coef_[:, number])
        assert [text.get_text() for text in bars.get_xticklabels()] == list("0123456789")
    assert display.figure_.get_suptitle() == "ShareBoostClassifier"


def test_images_give_the_mean_and_the_unit(model):
    display = PatchDisplay.from_estimator(model, IMAGES, name="ours")
    np.testing.assert_allclose(display.image, IMAGES.mean(axis=0))
    responses = model.model_.pool.evaluate(IMAGES.reshape(-1, 64), list(model.path_["feature"]))
    np.testing.assert_allclose(display.weights, (model.coef_ * responses.max(axis=0)).T)
    assert "largest response" in display.figure_.get_supxlabel()
    assert display.figure_.get_suptitle() == "ours"


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix, sparse.csr_array])
def test_rows_do_as_well_as_images(model, kind):
    display = PatchDisplay.from_estimator(model, kind(IMAGES.reshape(-1, 64)))
    np.testing.assert_allclose(display.image, IMAGES.mean(axis=0))


def test_bars_share_their_axis(model):
    display = PatchDisplay.from_estimator(model, IMAGES)
    assert len({ax.get_ylim() for ax in display.axes_[:, 2]}) == 1


def test_given_image(model):
    display = PatchDisplay.from_estimator(model, IMAGES, image=IMAGES[3].ravel())
    np.testing.assert_array_equal(display.image, IMAGES[3])
    np.testing.assert_array_equal(display.axes_[0, 1].images[0].get_array(), IMAGES[3])


def test_first_patches_on_a_given_figure(model):
    figure = pyplot.figure(layout="constrained")
    display = PatchDisplay.from_estimator(model, n_patches=3, figure=figure, n_across=2)
    assert display.figure_ is figure
    assert len(display.templates) == 3
    assert len(figure.axes) == 9
    assert [ax.get_title(loc="left") for ax in display.axes_[:, 0]] == ["1", "2", "3"]


def test_on_a_part_of_a_figure(model):
    part = pyplot.figure(layout="constrained").subfigures(1, 2)[1]
    assert PatchDisplay.from_estimator(model, figure=part).figure_ is part


def test_plot_again(model):
    display = PatchDisplay.from_estimator(model)
    first = display.figure_
    assert display.plot(name="again", n_across=1) is display
    assert display.figure_ is not first
    assert display.figure_.get_suptitle() == "again"


def test_two_classes_have_opposite_weights():
    model = ShareBoostClassifier(3, pool=POOL, random_state=0).fit(IMAGES, Y == 3)
    display = PatchDisplay.from_estimator(model)
    np.testing.assert_allclose(display.weights[:, 1], model.coef_[0] / 2)
    np.testing.assert_allclose(display.weights[:, 0], -model.coef_[0] / 2)
    assert display.names == [False, True]


def test_outputs_of_a_regressor():
    targets = np.stack([IMAGES[:, :4].mean((1, 2)), IMAGES[:, :, :4].mean((1, 2))], axis=1)
    model = ShareBoostRegressor(3, pool=POOL, random_state=0)
    display = PatchDisplay.from_estimator(model.fit(IMAGES, targets))
    assert display.names == [0, 1]
    np.testing.assert_allclose(display.weights, model.coef_.T)
    single = PatchDisplay.from_estimator(model.fit(IMAGES, targets[:, 0]))
    np.testing.assert_allclose(single.weights[:, 0], model.coef_)


def test_chosen_by_cross_validation():
    model = ShareBoostClassifierCV(4, pool=POOL, cv=2, random_state=0).fit(IMAGES, Y)
    display = PatchDisplay.from_estimator(model)
    assert len(display.templates) == model.n_features_to_select_


def test_patches_of_a_union():
    pool = Union((Columns(), POOL))
    model = ShareBoostClassifier(6, pool=pool, alpha=1e-6, random_state=0).fit(IMAGES, Y)
    places = [place for place, (owner, _) in enumerate(model.path_["feature"]) if owner == 1]
    display = PatchDisplay.from_estimator(model, IMAGES)
    assert display.titles == [f"{place + 1}" for place in places]
    assert len(display.templates) == len(places) > 0
    plain = PatchDisplay.from_estimator(model)
    np.testing.assert_allclose(plain.weights, model.coef_[:, places].T)


def test_several_sizes():
    pool = Patches(size=(2, 4), n_templates=8, masks=4)
    model = ShareBoostClassifier(8, pool=pool, random_state=0).fit(IMAGES, Y)
    shapes = {part.shape for part in PatchDisplay.from_estimator(model).templates}
    assert shapes == {(2, 2), (4, 4)}


def test_tensors():
    torch = pytest.importorskip("torch")
    images = torch.asarray(IMAGES, dtype=torch.float32)
    with config_context(array_api_dispatch=True):
        model = ShareBoostClassifier(3, pool=POOL, random_state=0).fit(images, torch.asarray(Y))
        display = PatchDisplay.from_estimator(model, images, image=images[0, :, :])
        assert display.names == list(range(10))
        display = PatchDisplay.from_estimator(model, images)
    np.testing.assert_allclose(display.image, IMAGES.mean(axis=0), rtol=1e-5)


def test_unfitted_estimator():
    with pytest.raises(NotFittedError):
        PatchDisplay.from_estimator(ShareBoostClassifier(pool=POOL))


@pytest.mark.parametrize("pool", [None, Stumps(), Union((Columns(), Stumps()))])
def test_other_pools(pool):
    model = ShareBoostClassifier(3, pool=pool).fit(IMAGES.reshape(-1, 64), Y)
    with pytest.raises(ValueError, match="no patch was chosen"):
        PatchDisplay.from_estimator(model)


def test_other_estimators():
    model = OneVsRestGreedy(1).fit(IMAGES.reshape(-1, 64), Y)
    with pytest.raises(TypeError, match="OneVsRestGreedy has no chosen patches"):
        PatchDisplay.from_estimator(model)


@pytest.mark.parametrize(
    ("given", "kind", "words"),
    [
        ({"n_patches": 0}, ValueError, "n_patches=0 must be at least 1"),
        ({"n_patches": 2.5}, TypeError, "n_patches=2.5 must be a whole number"),
        ({"n_across": 0}, ValueError, "n_across=0"),
        ({"image": np.zeros((28, 28))}, ValueError, "images of 8 x 8 pixels"),
        ({"X": np.zeros((2, 28, 28))}, ValueError, "8 x 8"),
    ],
)
def test_bad_options(model, given, kind, words):
    with pytest.raises(kind, match=words):
        PatchDisplay.from_estimator(model, **given)


def test_missing_matplotlib_names_the_extra(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r'PatchDisplay needs.*pip install "mixnorm\[plot\]"'):
        PatchDisplay.from_estimator(model)


def test_matplotlib_is_imported_late():
    code = "import sys, mixnorm.display.patches; assert 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
