"""
Ten digits from a few pixels
============================

One fit of :class:`~mixnorm.ShareBoostClassifier` gives the models of all sizes. This example
looks at the path in two ways: with the errors on held-out data, and with cross-validation, which
chooses the size without them.
"""

# %%
# The digits of scikit-learn are images of 8 by 8 pixels.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from mixnorm import ShareBoostClassifier, ShareBoostClassifierCV, ShareBoostPathDisplay

X, y = load_digits(return_X_y=True)
X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)

model = ShareBoostClassifier(n_features_to_select=40).fit(X, y)
ShareBoostPathDisplay.from_estimator(model, X_test, y_test)
plt.show()

# %%
# ``truncate`` returns any smaller model of the path without refitting.

for size in (5, 10, 20, 40):
    error = 1 - model.truncate(size).score(X_test, y_test)
    print(f"{size:2d} pixels: test error {100 * error:.1f} %")

# %%
# The next figure shows where the first 20 pixels are, numbered in the order of choice.

order = np.full(64, np.nan)
order[model.selected_[:20]] = np.arange(1, 21)
fig, ax = plt.subplots(figsize=(4, 4))
ax.imshow(X.mean(axis=0).reshape(8, 8), cmap="Greys", alpha=0.4)
for pixel, rank in enumerate(order):
    if np.isfinite(rank):
        ax.text(pixel % 8, pixel // 8, f"{rank:.0f}", ha="center", va="center")
ax.set_axis_off()
ax.set_title("The first 20 pixels, over the mean image")
plt.show()

# %%
# Cross-validation chooses the size on the training part alone. The band is one
# standard deviation over the folds. The search takes the smallest of the sizes within one
# standard error of the best.

search = ShareBoostClassifierCV(n_features_to_select=40, cv=5, one_standard_error=True)
search.fit(X, y)
ShareBoostPathDisplay.from_estimator(search, X_test, y_test)
plt.show()
