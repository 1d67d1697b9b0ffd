"""Numbers and names as people read them."""

import math

import pytest

from mixnorm.display.report import html
from mixnorm.display.report import text as _text

NBSP = "\u00a0"


def plain(text):
    return text.replace(NBSP, " ")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (1.0, "1.00"),
        (0.4, "0.400"),
        (-0.0123456, "−0.0123"),
        (12.345, "12.3"),
        (34264.7, "34,265"),
        (2.2e10, "2.20 × 10¹⁰"),
        (-3e-7, "−3.00 × 10⁻⁷"),
        (math.nan, "–"),
        (math.inf, "–"),
        (-math.inf, "–"),
        (1e300, "–"),
        (None, "–"),
    ],
)
def test_number(value, text):
    assert plain(_text.number(value)) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0 %"),
        (1.0, "100 %"),
        (0.0523, "5.2 %"),
        (0.0052, "0.52 %"),
        (0.00041, "0.041 %"),
        (0.9996, "99.960 %"),
        (0.9042, "90.4 %"),
        (1.7, "170.0 %"),
        (1e-7, "< 0.001 %"),
        (1 - 1e-7, "> 99.999 %"),
        (math.nan, "–"),
        (None, "–"),
    ],
)
def test_percent(value, text):
    assert plain(_text.percent(value)) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.001, "under 0.01 s"),
        (0.25, "0.25 s"),
        (2.34, "2.3 s"),
        (42.4, "42 s"),
        (59.97, "1 min 0 s"),
        (200, "3 min 20 s"),
        (7500, "2 h 5 min"),
        (math.nan, "–"),
        (-1, "–"),
    ],
)
def test_duration(seconds, text):
    assert plain(_text.duration(seconds)) == text


def test_counts_and_sizes():
    assert _text.count(48000) == "48,000"
    assert _text.count(1.5) == "1.50"
    assert _text.count(math.inf) == "–"
    assert plain(_text.byte_size(812)) == "812 bytes"
    assert plain(_text.byte_size(3120)) == "3.12 kB"
    assert plain(_text.byte_size(45_600_000)) == "45.6 MB"
    assert plain(_text.byte_size(2.5e12)) == "2,500 GB"
    assert _text.byte_size(None) == "–"
    assert plain(_text.plural(1, "class", "classes")) == "1 class"
    assert plain(_text.plural(2, "class", "classes")) == "2 classes"


def test_errors_with_their_standard_error():
    assert plain(_text.plus_minus(0.052, 0.006, "classification")) == "5.2 % ± 0.6"
    assert plain(_text.plus_minus(3.412, 0.3, "regression")) == "3.41 ± 0.30"
    assert plain(_text.plus_minus(0.052, math.nan, "classification")) == "5.2 %"
    assert plain(_text.plus_minus(None, 0.1, "classification")) == "–"


def test_fixed_has_no_sign_on_zero():
    assert _text.format_fixed(-0.004, 2) == "0.00"
    assert _text.format_fixed(-0.006, 2) == "−0.01"


def test_short_names():
    assert _text.shorten("age", 10) == "age"
    cut = _text.shorten("x" * 200, 10)
    assert cut.endswith("…")
    assert _text.text_width(cut) <= 10
    # Characters of East Asia are twice as wide, so fewer fit.
    assert len(_text.shorten("名" * 50, 10)) < len(_text.shorten("x" * 50, 10))
    assert _text.shorten(" \n ", 10) == "(no name)"


def test_clean_keeps_what_can_be_shown():
    assert html.clean("a\x00b\x1b\u202ec\ud800d\ufffee\r\nf\tg") == "abcde\nf\tg"
    assert html.clean("a\x00b", gap="?") == "a?b"
    assert html.clean("שלום 列 👩‍👧") == "שלום 列 👩‍👧"


def test_tag_escapes():
    made = html.tag("p", "<&\"'>", html.Html("<b>bold</b>"), None, title="\"<&'", class_="x")
    expected = (
        '<p title="&quot;&lt;&amp;&#x27;" class="x">&lt;&amp;"\'&gt;<b>bold</b></p>'  # not twice
    )
    assert made == expected
    assert html.tag("line", x1=1.25, x2=3, hidden=True, y1=None, y2=False) == (
        '<line x1="1.25" x2="3" hidden=""/>'
    )
