"""curl, browsers, TLS, sockets and signals against the real process."""

import http.client
import json
import signal
import subprocess
import time

from conftest import metric, wait_until_idle

CHAT = {"model": "dsv4", "messages": [{"role": "user", "content": "Hi"}]}


def curl(*args):
    done = subprocess.run(["curl", "-sS", "--max-time", "20", *args], capture_output=True,
                          check=True)
    return done.stdout.decode()


def chat_args(**fields):
    return ["-H", "Content-Type: application/json", "-d", json.dumps({**CHAT, **fields})]


def test_curl(server):
    answer = json.loads(curl(server.url + "/v1/chat/completions", *chat_args()))
    assert answer["choices"][0]["message"]["content"] == "Hello, 你好 😀!"
    events = curl("-N", server.url + "/v1/chat/completions", *chat_args(stream=True))
    assert events.endswith("data: [DONE]\n\n")
    assert all(line.startswith("data: ") for line in events.splitlines() if line)
    # curl announces large bodies and waits for leave to send them.
    long = [{"role": "user", "content": "Hi " * 5000}]
    answer = json.loads(curl(server.url + "/v1/chat/completions", *chat_args(messages=long)))
    assert answer["object"] == "chat.completion"


def test_events_arrive_as_they_are_made(server):
    start = time.monotonic()
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    body = {**CHAT, "messages": [{"role": "user", "content": "slow"}], "stream": True}
    connection.request("POST", "/v1/chat/completions", json.dumps(body),
                       {"Content-Type": "application/json"})
    response = connection.getresponse()
    times = [time.monotonic() - start for line in response if line.startswith(b"data: ")]
    assert times[2] < times[-1] - 0.5


def test_a_browser_page(server):
    """What fetch() of a page on another origin does: ask first, then send, then read."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    connection.request("OPTIONS", "/v1/chat/completions", headers={
        "Origin": "http://localhost:5173", "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,content-type,x-stainless-lang",
        "Sec-Fetch-Mode": "cors"})
    preflight = connection.getresponse()
    preflight.read()
    assert preflight.status == 200
    assert preflight.headers["Access-Control-Allow-Origin"] == "*"
    assert "POST" in preflight.headers["Access-Control-Allow-Methods"]
    allowed = preflight.headers["Access-Control-Allow-Headers"].split(",")
    assert {"authorization", "content-type", "x-stainless-lang"} <= set(allowed)
    connection.request("POST", "/v1/chat/completions", json.dumps({**CHAT, "stream": True}), {
        "Origin": "http://localhost:5173", "Content-Type": "application/json",
        "Authorization": "Bearer none"})
    answer = connection.getresponse()
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert answer.read().endswith(b"data: [DONE]\n\n")


def test_tls(start, tmp_path):
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                    "-keyout", key, "-out", certificate, "-subj", "/CN=localhost",
                    "-addext", "subjectAltName=DNS:localhost"], check=True, capture_output=True)
    server = start("--ssl-keyfile", str(key), "--ssl-certfile", str(certificate))
    url = f"https://localhost:{server.port}"
    resolve = ["--resolve", f"localhost:{server.port}:127.0.0.1", "--cacert", str(certificate)]
    answer = json.loads(curl(*resolve, url + "/v1/chat/completions", *chat_args()))
    assert answer["choices"][0]["message"]["content"] == "Hello, 你好 😀!"
    assert curl(*resolve, "-N", url + "/v1/chat/completions",
                *chat_args(stream=True)).endswith("data: [DONE]\n\n")
    plain = subprocess.run(["curl", "-sS", "--max-time", "5", f"http://localhost:{server.port}/"],
                           capture_output=True)
    assert plain.returncode != 0
    assert curl(*resolve, url + "/version")
    assert server.stop() == 0


def test_unix_socket(start, tmp_path):
    path = tmp_path / "s"
    server = start("--uds", str(path))
    answer = json.loads(curl("--unix-socket", str(path), "http://x/v1/chat/completions",
                             *chat_args()))
    assert answer["object"] == "chat.completion"
    assert server.stop() == 0
    assert not path.exists()


def test_keys(start):
    server = start("--api-key", "one", "two")
    assert curl("-w", "%{http_code}", server.url + "/v1/models") == '{"error":"Unauthorized"}401'
    assert "dsv4" in curl("-H", "Authorization: Bearer two", server.url + "/v1/models")


def test_a_killed_client_frees_its_request(server):
    body = chat_args(messages=[{"role": "user", "content": "forever"}], stream=True)
    client = subprocess.Popen(["curl", "-sS", "-N", server.url + "/v1/chat/completions", *body],
                              stdout=subprocess.DEVNULL)
    for _ in range(100):
        if metric(server, "vllm:num_requests_running") == 1:
            break
        time.sleep(0.05)
    assert metric(server, "vllm:num_requests_running") == 1
    client.send_signal(signal.SIGKILL)
    client.wait()
    wait_until_idle(server)


def test_sigterm_aborts(start):
    server = start()
    body = chat_args(messages=[{"role": "user", "content": "forever"}], stream=True)
    client = subprocess.Popen(["curl", "-sS", "-N", server.url + "/v1/chat/completions", *body],
                              stdout=subprocess.PIPE)
    time.sleep(1)
    begin = time.monotonic()
    assert server.stop() == 0
    assert time.monotonic() - begin < 5
    output = client.communicate(timeout=10)[0]
    assert b'"finish_reason":"abort"' in output and output.endswith(b"data: [DONE]\n\n")


def test_sigterm_drains(start):
    server = start("--shutdown-timeout", "20")
    body = chat_args(messages=[{"role": "user", "content": "slow"}], stream=True)
    client = subprocess.Popen(["curl", "-sS", "-N", server.url + "/v1/chat/completions", *body],
                              stdout=subprocess.PIPE)
    time.sleep(0.5)
    assert server.stop() == 0
    output = client.communicate(timeout=10)[0]
    assert b'"finish_reason":"stop"' in output and output.endswith(b"data: [DONE]\n\n")


def test_keep_alive_comments(start):
    server = start("--sse-keep-alive-interval", "1")
    body = chat_args(messages=[{"role": "user", "content": "forever"}], stream=True)
    client = subprocess.Popen(["curl", "-sS", "-N", "--max-time", "4",
                               server.url + "/v1/chat/completions", *body],
                              stdout=subprocess.PIPE)
    assert b": ping\n\n" in client.communicate(timeout=20)[0]
