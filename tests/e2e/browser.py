# SPDX-License-Identifier: Apache-2.0
"""Chromium without a window, in a node of a lab, driven over a pipe by the Chrome DevTools Protocol. A test asks what the
page shows by JavaScript expressions, and presses real keys."""

import base64
import itertools
import json
import os
import select
import shutil
import subprocess
import time

PROGRAM = shutil.which("chromium")
PATIENCE = 60.0  # seconds for one answer of a browser on a busy machine


class Browser:
    """One tab. `errors` holds what its console complained of, and exceptions that nothing caught."""

    def __init__(self, lab, node, folder, width=1280, height=900, scheme="light", options=()):
        self.errors = []
        self.numbers = itertools.count(1)
        self.buffer = b""
        commands, self.to_browser = os.pipe()
        self.from_browser, answers = os.pipe()
        words = [PROGRAM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                 "--disable-background-networking", "--disable-component-update", f"--user-data-dir={folder}",
                 "--remote-debugging-pipe", *options, "about:blank"]
        # The protocol's pipes are the descriptors 3 and 4.
        with lab.inside(node):
            self.process = subprocess.Popen(
                ["bash", "-c", f'exec "$0" "$@" 3<&{commands} 4>&{answers}', *words], pass_fds=(commands, answers),
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        os.close(commands)
        os.close(answers)
        self.session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.resize(width, height)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            os.killpg(self.process.pid, 9)
        except ProcessLookupError:
            pass
        self.process.wait()
        os.close(self.to_browser)
        os.close(self.from_browser)

    # -- the protocol

    def call(self, method, **parameters):
        number = next(self.numbers)
        message = {"id": number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to_browser, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.message()
            if answer.get("id") != number:
                self.note(answer)
            elif "error" in answer:
                raise AssertionError(f"{method}: {answer['error']}")
            else:
                return answer["result"]

    def message(self):
        while b"\0" not in self.buffer:
            if not select.select([self.from_browser], [], [], PATIENCE)[0]:
                raise AssertionError("the browser does not answer")
            piece = os.read(self.from_browser, 1 << 20)
            if not piece:
                raise AssertionError("the browser has ended")
            self.buffer += piece
        text, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(text)

    def note(self, event):
        method, about = event.get("method"), event.get("params", {})
        if method == "Log.entryAdded" and about["entry"]["level"] in ("error", "warning"):
            self.errors.append(f"{about['entry']['text']} {about['entry'].get('url', '')}")
        if method == "Runtime.exceptionThrown":
            details = about["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description", details["text"]))
        if method == "Runtime.consoleAPICalled" and about["type"] == "error":
            self.errors.append(json.dumps(about["args"]))

    # -- what a person does

    def open(self, address):
        self.call("Page.navigate", url=address)

    def resize(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)

    def value(self, expression):
        """Of a JavaScript expression, which may be a promise."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise AssertionError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def text(self, selector):
        return self.value(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''")

    def until(self, expression, seconds=PATIENCE):
        end = time.monotonic() + seconds
        while not (value := self.value(expression)):
            if time.monotonic() > end:
                raise AssertionError(f"never true: {expression}\n{self.errors}\n{self.value('document.body.innerText')}")
            time.sleep(0.1)
        return value

    def press(self, key, text=None):
        codes = {"Tab": 9, "Enter": 13, "Escape": 27, "ArrowLeft": 37, "ArrowRight": 39, " ": 32}
        press = {"key": key, "windowsVirtualKeyCode": codes[key]}
        if key in ("Enter", " "):
            press["text"] = "\r" if key == "Enter" else " "
        self.call("Input.dispatchKeyEvent", type="keyDown", **press)
        self.call("Input.dispatchKeyEvent", type="keyUp", **press)

    def type(self, text):
        self.call("Input.insertText", text=text)

    def screenshot(self, file, whole=True):
        image = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(base64.b64decode(image["data"]))
