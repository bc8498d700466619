"""Starts `fulgur serve` on scripted output for the tests of this folder."""

import json
import os
import pathlib
import signal
import socket
import subprocess
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOKENIZER = ROOT / "src/text/testdata/tiny_tokenizer.json"

DSML = "｜DSML｜"
CALL = (
    f"</think>I look.\n\n<{DSML}tool_calls>\n"
    f'<{DSML}invoke name="get_weather">\n'
    f'<{DSML}parameter name="city" string="true">Lyon</{DSML}parameter>\n'
    f'<{DSML}parameter name="days" string="false">3</{DSML}parameter>\n'
    f"</{DSML}invoke>\n</{DSML}tool_calls>"
)
SCRIPT = [
    {"match": "weather", "text": CALL},
    {"match": "think", "text": "First this, then that.</think>It is 4."},
    {"match": "forever", "text": "</think>" + "on and on " * 20000, "delay_ms": 5},
    {"match": "slow", "text": "</think>" + "tick " * 20, "delay_ms": 50},
    {"match": "break", "text": "</think>so f", "finish": "disconnect"},
    {"match": "fail", "text": "</think>so f", "finish": "error"},
    {"match": "cut", "text": "</think>so f", "finish": "length"},
    {"text": "</think>Hello, 你好 😀!"},
]


def pytest_addoption(parser):
    parser.addoption("--fulgur", default=str(ROOT / "build/release/fulgur"))


class Server:
    """A running server; `port` is None when it listens on a unix socket."""

    def __init__(self, binary, folder, flags):
        self.folder = folder
        self.port = None if "--uds" in flags else free_port()
        script = folder / "script.jsonl"
        script.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in SCRIPT))
        (folder / "tokenizer.json").write_bytes(TOKENIZER.read_bytes())
        command = [binary, "serve", str(folder), "--tokenizer", str(folder),
                   "--served-model-name", "dsv4", "--host", "127.0.0.1",
                   "--scripted-output", str(script), "--tokenizer-mode", "deepseek_v4",
                   "--tool-call-parser", "deepseek_v4", "--enable-auto-tool-choice",
                   "--reasoning-parser", "deepseek_v4", "--max-model-len", "200000"]
        if self.port:
            command += ["--port", str(self.port)]
        self.log = open(folder / "log.txt", "w+b")
        self.process = subprocess.Popen(command + flags, stdout=self.log, stderr=subprocess.STDOUT)
        self.wait_until_ready()

    def wait_until_ready(self):
        for _ in range(600):
            if self.process.poll() is not None or b"serving " in self.output():
                break
            time.sleep(0.05)
        assert self.process.poll() is None, self.output().decode()

    def output(self):
        return (self.folder / "log.txt").read_bytes()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def stop(self, how=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(how)
        return self.process.wait(timeout=30)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def start(request, tmp_path):
    """start(*flags): a server with further flags, stopped after the test."""
    binary = request.config.getoption("--fulgur")
    assert os.access(binary, os.X_OK), f"{binary} is not there; build it first"
    started = []

    def run(*flags):
        folder = tmp_path / str(len(started))
        folder.mkdir()
        started.append(Server(binary, folder, list(flags)))
        return started[-1]

    yield run
    for server in started:
        server.stop(signal.SIGKILL)


@pytest.fixture(scope="module")
def server(request, tmp_path_factory):
    """A server shared by the tests of a module; it must be idle and healthy at the end."""
    running = Server(request.config.getoption("--fulgur"), tmp_path_factory.mktemp("server"), [])
    yield running
    wait_until_idle(running)
    assert running.stop() == 0


def metric(server, name):
    import urllib.request

    text = urllib.request.urlopen(server.url + "/metrics").read().decode()
    lines = [line for line in text.splitlines() if line.startswith(name + "{")]
    assert lines, name
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines)


def wait_until_idle(server):
    """Nothing runs or waits and no memory of sequences is held."""
    names = ["vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc"]
    for _ in range(200):
        if all(metric(server, name) == 0 for name in names):
            return
        time.sleep(0.05)
    raise AssertionError({name: metric(server, name) for name in names})
