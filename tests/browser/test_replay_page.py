# SPDX-License-Identifier: BSD-3-Clause
"""The page of ibcoll_sim --replay --html in a browser: two time lines, one above the other."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "tools"))
import chromium
import test_replay


class ReplayPage(chromium.BrowserTest, test_replay.ReplayTest):
    def test_both_time_lines_are_drawn(self):
        self.write_barriers(late=20_000)
        file = self.folder / "replay.html"
        self.replay("--html", file, "--alpha", 30)
        for dark in (False, True):
            page = self.open(file, height=1200, dark=dark)
            frames = page.value("[...document.querySelectorAll('iframe')].map(frame => {"
                                "  const box = frame.getBoundingClientRect();"
                                "  return [frame.title, box.x, box.y, box.x + box.width, box.y + box.height]; })")
            self.assertEqual([frame[0] for frame in frames], ["recorded", "chosen by ibcoll"])
            picture = page.screenshot()
            barrier = (0xa0, 0xb4, 0xe9)  # the first colour of tools/traces/time_line.cc
            for title, *box in frames:
                with self.subTest(title=title, dark=dark):
                    pixels = list(picture.crop(tuple(map(round, box))).getdata())
                    self.assertGreater(pixels.count(barrier), 500)
            self.assertEqual(list(page.complaints()), [])
