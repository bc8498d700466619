"""Runs the real program for tests: commands to their end, and servers that are stopped at the end of a block."""
import contextlib
import json
import os
import re
import signal
import subprocess
import tempfile
import threading
import time
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FULGUR = os.environ.get("FULGUR", os.path.join(ROOT, "build/release/fulgur"))
TINY_MODEL = os.path.join(ROOT, "tests/cli/tiny_model")
TINY_TOKENIZER = os.path.join(ROOT, "src/text/testdata/tiny_tokenizer.json")
DUMMY = [TINY_MODEL, "--load-format", "dummy", "--tokenizer", TINY_TOKENIZER, "--max-model-len", "4096"]


def run(*args, stdin="", timeout=60, **options):
    """Runs `fulgur ARGS` to its end."""
    return subprocess.run([FULGUR, *args], input=stdin, capture_output=True, text=True, timeout=timeout, **options)


class Server:
    """A running `fulgur serve`; `log` grows while it runs."""

    def __init__(self, args):
        self.log = []
        self.process = subprocess.Popen([FULGUR, "serve", *args, "--port", "0"], stderr=subprocess.PIPE, text=True)
        self.address = None
        self._ready = threading.Event()
        self._reader = threading.Thread(target=self._read_log)
        self._reader.start()
        if not self._ready.wait(60) or self.address is None:
            self.kill()
            raise RuntimeError("the server did not start:\n" + "".join(self.log))

    def _read_log(self):
        for line in self.process.stderr:
            self.log.append(line)
            found = re.search(r" serving .* at (http://[0-9.:]+)$", line.strip())
            if found:
                self.address = found.group(1)
                self._ready.set()
        self._ready.set()

    def post(self, path, body, timeout=60):
        """The open answer to a JSON request."""
        request = urllib.request.Request(self.address + path, json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        return urllib.request.urlopen(request, timeout=timeout)

    def signal(self, number=signal.SIGTERM):
        self.process.send_signal(number)

    def wait(self, timeout=30):
        """The exit code."""
        code = self.process.wait(timeout)
        self._reader.join()
        self.process.stderr.close()
        return code

    def kill(self):
        self.process.kill()
        self.wait()

    def stop(self):
        self.signal()
        return self.wait()


@contextlib.contextmanager
def serving(*args):
    server = Server(args)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.stop()


@contextlib.contextmanager
def script_file(*lines):
    """A --scripted-output file of these answers."""
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        file.write("".join(json.dumps(line) + "\n" for line in lines))
        file.flush()
        yield file.name


@contextlib.contextmanager
def scripted(*lines, flags=()):
    """A server that replays these answers."""
    with script_file(*lines) as path:
        with serving("--scripted-output", path, "--tokenizer", TINY_TOKENIZER, "--served-model-name", "script",
                     "--reasoning-parser", "deepseek_v4", *flags) as server:
            yield server


def wait_until(condition, timeout=20):
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return False
