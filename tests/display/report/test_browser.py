"""The page in a browser: nothing sticks out, nothing is loaded, everything can be read.

One browser serves all tests of a worker, so there are few of them, each with many checks; what is
wrong is gathered, so that one run tells all of it.
"""

import shutil

import pytest

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")

NAMES = ["two", "ten", "hundred", "regression", "dense", "nasty", "interrupted"]
WIDTHS = (1280, 400)
OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

STICKS_OUT = """
const page = document.documentElement, found = [];
if (page.scrollWidth > page.clientWidth) found.push(`page ${page.scrollWidth} wide`);
for (const element of document.body.querySelectorAll('*')) {
  if (element.parentElement.closest('.scroll')) continue;
  const box = element.getBoundingClientRect();
  if (box.width && (box.right > page.clientWidth + 1 || box.left < -1))
    found.push(`${element.tagName} ${element.getAttribute('class')} ${box.left} ${box.right}`);
}
return found.slice(0, 5);
"""

# Text in a drawing shrinks with it. Drawings that scroll keep their size.
SMALL_TEXT = """
const found = [];
for (const element of document.body.querySelectorAll('*')) {
  const own = [...element.childNodes].some(n => n.nodeType === 3 && n.data.trim());
  const box = element.getBoundingClientRect();
  if (!own || !box.width) continue;
  const svg = element.closest('svg');
  const scale = svg ? svg.getBoundingClientRect().width / svg.viewBox.baseVal.width : 1;
  const size = scale * parseFloat(getComputedStyle(element).fontSize);
  if (size < 8.95) found.push(`${size} ${element.textContent.slice(0, 30)}`);
}
return found.slice(0, 5);
"""

# Boxes of upright text, less a fifth of their height above and below, where letters seldom reach;
# turned text is compared by the distance of its lines.
OVERLAPS = """
const found = [];
for (const svg of document.querySelectorAll('svg')) {
  if (!svg.getBoundingClientRect().width) continue;
  const texts = [...svg.querySelectorAll('text')];
  const upright = texts.filter(t => !t.getAttribute('transform')).map(t => {
    const box = t.getBoundingClientRect();
    return {t, left: box.left, right: box.right,
            top: box.top + box.height / 5, bottom: box.bottom - box.height / 5};
  }).sort((a, b) => a.top - b.top);
  for (let i = 0; i < upright.length; i++)
    for (let j = i + 1; j < upright.length && upright[j].top < upright[i].bottom; j++) {
      const a = upright[i], b = upright[j];
      if (a.left < b.right - 1 && b.left < a.right - 1)
        found.push(`${svg.id} ${a.t.textContent} / ${b.t.textContent}`);
    }
  const turned = texts.filter(t => /rotate/.test(t.getAttribute('transform') || '')
                                   && t.classList.contains('label'));
  for (let i = 1; i < turned.length; i++) {
    const [a, x, y] = turned[i].getAttribute('transform').match(/-?[\\d.]+/g).map(Number);
    const [, u, v] = turned[i - 1].getAttribute('transform').match(/-?[\\d.]+/g).map(Number);
    if (Math.abs(y - v) > 1) continue;  // names below follow those above
    const apart = Math.abs((x - u) * Math.sin(a * Math.PI / 180));
    if (apart < parseFloat(getComputedStyle(turned[i]).fontSize))
      found.push(`${turned[i].textContent} is ${apart} from the next`);
  }
}
return found.slice(0, 5);
"""

UNDESCRIBED = """
return [...document.querySelectorAll('svg')].filter(svg => {
  const named = (svg.getAttribute('aria-labelledby') || '').split(' ');
  return svg.getAttribute('role') !== 'img' || named.length !== 2
    || named.some(id => !document.getElementById(id)?.textContent.trim());
}).map(svg => svg.outerHTML.slice(0, 100));
"""

COLOURS = """
const opaque = color => !/, 0\\)|transparent/.test(color);
const behind = element => {
  for (; element; element = element.parentElement) {
    const color = getComputedStyle(element).backgroundColor;
    if (opaque(color)) return color;
  }
  return 'rgb(255, 255, 255)';
};
const seen = 'body, .comparison, .overline, .tiles dt, .tiles b, a, figcaption, small, caption,'
  + ' .legend li, pre, footer p, summary, .notice, .tick, .callout, svg .label';
return [...document.querySelectorAll(seen)].filter(e => e.getClientRects().length).map(e => {
  const style = getComputedStyle(e);
  const color = e.closest('svg') ? style.fill : style.color;
  return [e.tagName + '.' + e.getAttribute('class'), color, behind(e)];
});
"""

HUES = """
const style = getComputedStyle(document.documentElement);
const value = name => style.getPropertyValue('--' + name).trim();
return ['raise', 'lower', 'size', 'right', 'wrong'].map(
  name => [name, value('ink'), value(name)]);
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """A browser, started when the first test needs it."""
    chromium = next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
    )
    driver = shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("chromium or chromedriver is not installed")
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for option in OPTIONS:
        options.add_argument(option)
    options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('browser')}")
    started = webdriver.Chrome(options=options, service=Service(driver))
    yield started
    started.quit()


@pytest.fixture(scope="module")
def pages(reports, tmp_path_factory):
    """Addresses of the reports as files."""
    folder = tmp_path_factory.mktemp("reports")
    for name in NAMES:
        reports[name].write(folder / f"{name}.html")
    return {name: (folder / f"{name}.html").as_uri() for name in NAMES}


def look(browser, *, width=1280, scheme="light", media="screen"):
    """Set the real size of the view, which windows have a minimum for, and how it is shown."""
    screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})


def channels(color):
    """Return red, green and blue from 0 to 1 of a computed colour."""
    if color.startswith("#"):
        return [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return [float(part) / 255 for part in color[color.index("(") + 1 : -1].split(",")[:3]]


def luminance(color):
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels(color)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    """Return the contrast of two colours as the accessibility guidelines define it."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_nothing_sticks_out_or_overlaps(browser, pages):
    problems = []
    for name, page in pages.items():
        look(browser)
        browser.get(page)
        for width in WIDTHS:
            look(browser, width=width)
            for folded in (True, False):
                browser.execute_script(
                    "document.querySelectorAll('details').forEach(d => d.open = !arguments[0])",
                    folded,
                )
                problems += [(name, width, p) for p in browser.execute_script(STICKS_OUT)]
            problems += [(name, width, "small", p) for p in browser.execute_script(SMALL_TEXT)]
            problems += [(name, width, "overlap", p) for p in browser.execute_script(OVERLAPS)]
    assert problems == []


def test_pages_stand_alone(browser, pages):
    problems = []
    for name, page in pages.items():
        look(browser)
        browser.get(page)
        loaded = browser.execute_script(
            "return performance.getEntriesByType('resource').map(entry => entry.name)"
        )
        problems += [(name, "loaded", address) for address in loaded]
        problems += [(name, entry["message"]) for entry in browser.get_log("browser")]
        problems += [(name, "svg", found) for found in browser.execute_script(UNDESCRIBED)]
        scripts = browser.execute_script("return document.scripts.length")
        styles = browser.execute_script("return document.styleSheets.length")
        problems += [(name, scripts, styles)] if (scripts, styles) != (0, 1) else []
    assert problems == []


def test_a_script_would_not_run(browser, tmp_path, reports):
    place = tmp_path / "page.html"
    page = reports["two"].to_html()
    place.write_text(
        page.replace("</body>", "<script>document.title = 'run'</script></body>"), encoding="utf-8"
    )
    browser.get(place.as_uri())
    assert browser.title == "class from cars.csv"
    assert "Content Security Policy" in browser.get_log("browser")[0]["message"]


@pytest.mark.parametrize("name", ["ten", "nasty"])
def test_schemes_and_print(browser, pages, name):
    browser.get(pages[name])
    problems, grounds = [], {}
    for scheme, media in (("light", "screen"), ("dark", "screen"), ("dark", "print")):
        look(browser, scheme=scheme, media=media)
        background = "return getComputedStyle(document.body).backgroundColor"
        grounds[scheme, media] = luminance(browser.execute_script(background))
        pairs = browser.execute_script(COLOURS) + browser.execute_script(HUES)
        assert len(pairs) > 50
        problems += [
            (scheme, media, what, text, ground)
            for what, text, ground in pairs
            if contrast(text, ground) < 4.5
        ]
    assert problems == []
    assert grounds["light", "screen"] == pytest.approx(1.0)
    assert grounds["dark", "screen"] < 0.02
    assert grounds["dark", "print"] == pytest.approx(1.0)
    hidden = browser.execute_script(
        "return [...document.querySelectorAll('nav, details:not([open])')]"
        ".every(e => getComputedStyle(e).display === 'none')"
    )
    assert hidden
