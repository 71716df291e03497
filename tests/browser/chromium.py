# SPDX-License-Identifier: BSD-3-Clause
"""Chromium without a window and without a network, driven through its DevTools protocol over two pipes."""

import base64
import io
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from PIL import Image

PROGRAM = shutil.which("chromium")
PATIENCE = 120  # seconds for an answer


class Browser:
    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="ibcoll_browser.")
        here_reads, browser_writes = os.pipe()
        browser_reads, here_writes = os.pipe()
        # An own network namespace that nobody has set up: no interface is up. Root cannot use Chromium's own sandbox.
        alone = ["unshare", "--map-root-user", "--net", "--"]
        if os.geteuid() == 0:
            alone.remove("--map-root-user")
        command = [*alone, "bash", "-c", f'exec 3<&{browser_reads} 4>&{browser_writes}; exec "$@"', "bash", PROGRAM,
                   "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                   "--hide-scrollbars", f"--user-data-dir={self.folder}", "--remote-debugging-pipe", "about:blank"]
        with open(f"{self.folder}/log", "wb") as log:
            self.process = subprocess.Popen(command, pass_fds=(browser_reads, browser_writes), stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log, env={**os.environ, "HOME": self.folder})
        os.close(browser_reads)
        os.close(browser_writes)
        self.reads, self.writes = here_reads, here_writes
        self.unread, self.number, self.events = b"", 0, []

    def log(self):
        return Path(self.folder, "log").read_text(errors="replace")[-2000:]

    def close(self):
        try:
            self.call("Browser.close")
            self.process.wait(20)
        except (RuntimeError, OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        os.close(self.reads)
        os.close(self.writes)
        shutil.rmtree(self.folder, ignore_errors=True)

    def receive(self, deadline):
        """The next message; they end with a zero byte."""
        while b"\0" not in self.unread:
            ready, _, _ = select.select([self.reads], [], [], max(0, deadline - time.monotonic()))
            data = os.read(self.reads, 1 << 20) if ready else b""
            if not data:
                raise RuntimeError(("chromium has ended: " if ready else "chromium does not answer: ") + self.log())
            self.unread += data
        message, _, self.unread = self.unread.partition(b"\0")
        return json.loads(message)

    def call(self, method, session=None, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.writes, data):]
        deadline = time.monotonic() + PATIENCE
        while True:
            answer = self.receive(deadline)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def wait_for(self, method):
        deadline = time.monotonic() + PATIENCE
        while not any(event.get("method") == method for event in self.events):
            self.events.append(self.receive(deadline))


class BrowserTest(unittest.TestCase):
    """A test with a browser, which all its cases share."""

    @classmethod
    def setUpClass(cls):
        if PROGRAM is None:
            raise AssertionError("chromium is not installed (tools/install_packages browser)")
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.close)

    def open(self, file, **how):
        page = Page(self.browser, file, **how)
        self.addCleanup(page.close)
        return page


class Page:
    """One page, of a file, in a window of `width` x `height` pixels."""

    def __init__(self, browser, file, width=1000, height=700, dark=False):
        self.browser = browser
        self.target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=self.target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        browser.events.clear()
        begun = time.monotonic()
        self.call("Page.navigate", url=Path(file).resolve().as_uri())
        browser.wait_for("Page.loadEventFired")
        self.screenshot()  # what a reader sees is painted
        self.seconds = time.monotonic() - begun

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def close(self):
        self.browser.call("Target.closeTarget", targetId=self.target)

    def value(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def screenshot(self):
        """What the window shows."""
        data = self.call("Page.captureScreenshot", format="png")["data"]
        return Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB")

    def complaints(self):
        """Errors of scripts, warnings of the browser, and requests for anything but the file."""
        for event in self.browser.events:
            method, about = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                yield about["exceptionDetails"].get("exception", about["exceptionDetails"])
            elif method == "Log.entryAdded" or method == "Runtime.consoleAPICalled":
                yield about
            elif method == "Network.requestWillBeSent" and not about["request"]["url"].startswith("file://"):
                yield about["request"]["url"]

    def key(self, name):
        for kind in ("keyDown", "keyUp"):
            text = {"text": name} if kind == "keyDown" and len(name) == 1 else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=name, **text)

    def mouse(self, kind, x, y, **others):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **others)

    def sees_like(self, deficiency):
        """Shows the page as people see it who have deuteranopia, protanopia, tritanopia or achromatopsia, or "none"."""
        self.call("Emulation.setEmulatedVisionDeficiency", type=deficiency)
