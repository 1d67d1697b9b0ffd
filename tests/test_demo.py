"""The first job a user runs."""

import io

from rich.console import Console

from mixnorm.demo import main


def test_demo_prints_the_curve_and_the_pixels():
    screen = io.StringIO()
    errors = main(Console(file=screen, width=100))
    text = screen.getvalue()
    assert errors[40] < 6 < errors[5]
    assert "Error against number of pixels" in text
    assert f"{errors[20]:.1f} %" in text
    assert text.count("·") == 64 - 20
