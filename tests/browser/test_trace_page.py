# SPDX-License-Identifier: BSD-3-Clause
"""The page of ibcoll_trace --html as a reader meets it: in a browser, from a file, without a network."""

import itertools
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import chromium

ROOT = Path(__file__).resolve().parents[2]
BUILD = (ROOT / os.environ.get("build", "build/release")).resolve()
sys.path.append(str(ROOT / "tests/tools"))
import test_trace  # it writes traces

COLLECTIVES = ("allreduce", "alltoall", "allgather", "bcast", "reduce", "barrier", "scatter", "gather", "allgatherv")
BARS = 100_000  # of tools/traces/page_calls.h


def luminance(colour):
    """Of WCAG 2: 0 black, 1 white."""
    parts = (part / 255 for part in colour)
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def distance(one, other):
    return sum((a - b) ** 2 for a, b in zip(one, other)) ** 0.5


class PageTest(chromium.BrowserTest, test_trace.TraceTest):
    def open_trace(self, **how):
        file = self.folder / "a page #1.html"
        self.answer(self.file, "--html", file)
        return self.open(file, **how)


class TracePage(PageTest):
    def trace(self, ranks, calls, milliseconds=1.0):
        """Call k lasts from millisecond k to k + 0.9. The ranks arrive one after the other in its first half."""
        unit = int(milliseconds * 1e6)
        for rank in range(ranks):
            self.write(rank, [self.record(int(unit * (call + rank / (2 * ranks))), int(unit * (call + 0.9)),
                                          op=call + 1, ranks=ranks, collective=COLLECTIVES[call % len(COLLECTIVES)])
                              for call in range(calls)], ranks=ranks)

    def where(self, page, call, part, rank):
        """The pixel at `part` of the time of a call, in the row of a rank."""
        x, y = page.value("[canvas.getBoundingClientRect().x + 1, canvas.getBoundingClientRect().y + 1]")
        at = page.value(f"x({(call + part) * 1000})")
        return round(x + at), round(y + page.value(f"middle({rank}) + row / 2 - 4"))  # below the name

    def colours(self, page, calls, part=0.8, rank=0):
        """Of the solid part of the first calls."""
        picture = page.screenshot()
        return [picture.getpixel(self.where(page, call, part, rank)) for call in range(calls)]

    def test_the_time_line_is_drawn(self):
        self.trace(ranks=4, calls=3)
        page = self.open_trace()
        picture = page.screenshot()
        paper = picture.getpixel((3, 3))
        self.assertEqual(paper, (255, 255, 255))
        fills = [tuple(bytes.fromhex(page.value(f"colours[{call}]")[1:])) for call in range(3)]
        for call, rank in itertools.product(range(3), range(4)):
            with self.subTest(call=call, rank=rank):
                self.assertEqual(picture.getpixel(self.where(page, call, 0.8, rank)), fills[call])
                # Between calls there is nothing, and before a rank has arrived.
                if call < 2:
                    self.assertEqual(picture.getpixel(self.where(page, call, 0.95, rank)), paper)
                if rank > 0:
                    self.assertEqual(picture.getpixel(self.where(page, call, rank / 8 - 0.05, rank)), paper)
                # The edge of the last rank, and of no other one.
                edge = picture.getpixel(self.where(page, call, rank / 8 + 0.004, rank))
                self.assertEqual(edge == (0, 0, 0), rank == 3, edge)
        # While rank 0 waits for the last one its bar is hatched.
        x, y = self.where(page, 0, 0.3, 0)
        self.assertGreater(len({picture.getpixel((x + dx, y)) for dx in range(8)}), 1)
        self.assertEqual(list(page.complaints()), [])

    def test_zoom_by_keyboard_and_mouse(self):
        self.trace(ranks=4, calls=5)
        page = self.open_trace()
        span = "Math.round(to - from)"
        whole, picture = page.value("[from, to]"), page.screenshot()
        all_of_it = whole[1] - whole[0]
        for key, wanted in (("+", 0.7), ("=", 0.49), ("-", 0.7), ("0", 1)):
            page.key(key)
            self.assertAlmostEqual(page.value(span), wanted * all_of_it, delta=2, msg=key)
            self.assertEqual(page.screenshot() == picture, key == "0", key)
        page.key("+")
        before = page.value("from")
        page.key("ArrowRight")
        self.assertGreater(page.value("from"), before)
        page.key("ArrowLeft")
        self.assertAlmostEqual(page.value("from"), before, delta=1)
        x, y = self.where(page, 2, 0.5, 1)
        before = page.value("from")
        page.mouse("mousePressed", x, y, button="left", clickCount=1)
        page.mouse("mouseMoved", x - 100, y, button="left")
        page.mouse("mouseReleased", x - 100, y, button="left", clickCount=1)
        self.assertGreater(page.value("from"), before)
        for count in (1, 2):
            for kind in ("mousePressed", "mouseReleased"):
                page.mouse(kind, x, y, button="left", clickCount=count)
        self.assertEqual(page.value("[from, to]"), whole)
        # The time under the pointer stays where it is.
        at = page.value(f"time({x} - canvas.getBoundingClientRect().x - 1)")
        page.mouse("mouseWheel", x, y, deltaX=0, deltaY=-300)
        self.assertLess(page.value(span), 0.7 * all_of_it)
        self.assertAlmostEqual(page.value(f"time({x} - canvas.getBoundingClientRect().x - 1)"), at, delta=all_of_it / 200)
        self.assertEqual(list(page.complaints()), [])

    def test_a_call_under_the_pointer_is_described(self):
        self.trace(ranks=4, calls=3)
        page = self.open_trace()
        page.mouse("mouseMoved", *self.where(page, 1, 0.8, 2))
        self.assertEqual(page.value("tip.style.display"), "block")
        self.assertIn("alltoall (direct), 8000 bytes", page.value("tip.textContent"))
        self.assertIn("rank 2: arrived 1.250 ms", page.value("tip.textContent"))
        page.mouse("mouseMoved", 3, 3)
        self.assertEqual(page.value("tip.style.display"), "none")

    def test_collectives_are_told_apart_without_colour_sight(self):
        self.trace(ranks=2, calls=7)
        page = self.open_trace()
        for deficiency in ("none", "deuteranopia", "protanopia", "tritanopia"):
            page.sees_like(deficiency)
            for one, other in itertools.combinations(self.colours(page, 7), 2):
                self.assertGreater(distance(one, other), 40, (deficiency, one, other))
        # Readers who see no colours read the names.
        page.sees_like("achromatopsia")
        picture = page.screenshot()
        for call in range(7):
            with self.subTest(call=call):
                (left, y), (right, _) = self.where(page, call, 0.3, 0), self.where(page, call, 0.88, 0)
                fill = picture.getpixel((right, y))
                text = [contrast(picture.getpixel((x, y + dy)), fill) for x in range(left, right) for dy in range(-20, -4)]
                self.assertGreater(max(text), 4)

    def test_the_eighth_collective_is_not_the_first(self):
        self.trace(ranks=2, calls=8)
        page = self.open_trace()
        first, eighth = (page.screenshot().getpixel(self.where(page, call, 0.8, 0)) for call in (0, 7))
        self.assertGreater(contrast(first, eighth), 3)

    def test_dark_mode_is_readable(self):
        self.trace(ranks=4, calls=7)
        page = self.open_trace(dark=True)
        picture = page.screenshot()
        paper = picture.getpixel((3, 3))
        self.assertLess(luminance(paper), 0.05)
        for call, colour in enumerate(self.colours(page, 7)):
            self.assertGreater(contrast(colour, paper), 3, call)
        for element in ("th", "td", "p", "#legend"):
            said = page.value(f"getComputedStyle(document.querySelector('{element}')).color")
            self.assertGreater(contrast([int(part) for part in said[4:-1].split(",")], paper), 7, said)
        # The names of the ranks, on the canvas.
        x, y = self.where(page, 0, 0, 1)
        names = {picture.getpixel((x - dx, y - dy)) for dx in range(10, 60) for dy in range(0, 20)}
        self.assertGreater(max(contrast(colour, paper) for colour in names), 7)
        page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "light"}])
        self.assertEqual(page.screenshot().getpixel((3, 3)), (255, 255, 255))

    def test_large_trace(self):
        """As many bars as a page has; the time that it takes is reported, and its limit is wide."""
        ranks = 64
        self.trace(ranks=ranks, calls=BARS // ranks, milliseconds=0.1)
        page = self.open_trace()
        self.assertEqual(page.value("trace.calls.length"), BARS // ranks)
        print(f"{ranks} ranks, {BARS // ranks * ranks} bars: opened after {page.seconds:.1f} s")
        self.assertLess(page.seconds, 60)
        self.assertEqual(list(page.complaints()), [])


class RealTrace(PageTest):
    def test_its_calls_are_drawn(self):
        done = subprocess.run([BUILD / "bin/ibcoll_run", "-n", "4", BUILD / "bin/ibcoll_perf", "alltoall", "-m", "100000",
                               "--iterations", "5"], env={**os.environ, "IBCOLL_TRACE": str(self.file)}, timeout=120,
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        page = self.open_trace()
        self.assertGreater(page.value("trace.calls.length"), 5)
        self.assertEqual(list(page.complaints()), [])
        # In the middle of the first call that is drawn, its lines too.
        call = page.value("""(() => {
            const call = trace.calls[0]; show(call.arrival[0] - 1, call.exit[0] + 1);
            const box = canvas.getBoundingClientRect();
            return [box.x + 1 + x((call.arrival[0] + call.exit[0]) / 2), box.y + 1 + middle(call.rank[0])]; })()""")
        before = page.screenshot()
        page.mouse("mouseMoved", *call)
        self.assertEqual(page.value("tip.style.display"), "block")
        self.assertNotEqual(page.screenshot(), before)
        self.assertEqual(list(page.complaints()), [])


if __name__ == "__main__":
    unittest.main()
