"""A chat server whose answers come at known times, and which remembers when it really sent them."""

import http.server
import json
import threading
import time

# One answer: [milliseconds, kind, tokens]. Kinds: role, content, reasoning, usage, or an HTTP status.
ANSWERS = [
    [[20, "role", 0], [60, "content", 1], [90, "content", 3], [130, "content", 2], [131, "usage", 0]],
    [[50, "reasoning", 2], [70, "reasoning", 3], [110, "content", 4], [150, "usage", 0]],
    [[80, "content", 1], [81, "usage", 0]],
    [[0, "400", 0]],
    [[40, "content", 5], [120, "content", 1], [121, "usage", 0]],
    [[30, "role", 0], [100, "content", 2], [140, "content", 2], [180, "content", 2], [181, "usage", 0]],
    [[0, "503", 0]],
    [[60 + 20 * i, "content", 1] for i in range(8)] + [[201, "usage", 0]],
]
PROMPT_TOKENS = 64


def tokens_of(answer, kinds=("content", "reasoning")):
    return sum(tokens for _, kind, tokens in answer if kind in kinds)


def usage_of(answer):
    tokens = tokens_of(answer)
    usage = {"prompt_tokens": PROMPT_TOKENS, "completion_tokens": tokens, "total_tokens": PROMPT_TOKENS + tokens}
    reasoning = tokens_of(answer, ("reasoning",))
    if reasoning:  # aiperf takes a reported 0 for a value, fulgur for an answer without reasoning
        usage["completion_tokens_details"] = {"reasoning_tokens": reasoning}
    return usage


def event(kind, tokens, answer):
    deltas = {"role": {"role": "assistant", "content": ""}, "content": {"content": " word" * tokens},
              "reasoning": {"reasoning_content": " word" * tokens}}
    body = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": []}
    if kind == "usage":
        body["usage"] = usage_of(answer)
    else:
        body["choices"] = [{"index": 0, "delta": deltas[kind], "finish_reason": None}]
    return f"data: {json.dumps(body)}\n\n".encode()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, status, body):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_HEAD(self):
        self.reply(404, b"")

    def do_GET(self):
        if self.path == "/v1/models":
            self.reply(200, json.dumps({"object": "list", "data": [{"id": "m", "object": "model"}]}).encode())
        else:
            self.reply(404, b"{}")

    def do_POST(self):
        start = time.monotonic()
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path != "/v1/chat/completions":
            self.reply(404, b"{}")
            return
        answer = self.server.next_answer()
        kind = answer[0][1]
        if kind.isdigit():
            error = {"error": {"message": f"told to fail with {kind}", "code": int(kind)}}
            self.reply(int(kind), json.dumps(error).encode())
            return
        self.stream(answer, start)

    def stream(self, answer, start):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        sent = []
        for at_ms, kind, tokens in answer:
            time.sleep(max(0.0, start + at_ms / 1000 - time.monotonic()))
            self.send_chunk(event(kind, tokens, answer))
            sent.append((kind, 1000 * (time.monotonic() - start)))
        self.send_chunk(b"data: [DONE]\n\n")
        self.wfile.write(b"0\r\n\r\n")
        self.server.truth[self.headers.get("X-Request-ID", "")] = sent

    def send_chunk(self, data):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()


class AnswerServer(http.server.ThreadingHTTPServer):
    """Answers in the order of ANSWERS, over and over; `truth` maps request ids to what was sent when."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.lock = threading.Lock()
        self.restart()

    def next_answer(self):
        with self.lock:
            self.served += 1
            return ANSWERS[(self.served - 1) % len(ANSWERS)]

    def restart(self):
        with self.lock:
            self.served = 0
            self.truth = {}
