"""A server with the OpenAI API whose every byte leaves at a known time, and that misbehaves on request."""
import asyncio
import contextlib
import json
import threading
import time

MODEL = "timed"


class Request:
    """One request as the server got it."""

    def __init__(self, path, headers, body, number):
        self.time = time.monotonic()
        self.path = path
        self.headers = headers
        self.body = body
        self.number = number  # counts generation requests from 0
        self.sent = []  # before and after each output chunk left, on the clock that the load generator uses too

    def decode_ms(self):
        """From the first output chunk to the last, at least and at most: a busy machine sends late."""
        first, last = self.sent[0], self.sent[-1]
        return (last[0] - first[1]) * 1000, (last[1] - first[0]) * 1000


def chunk(delta, finish=None, **more):
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"object": "chat.completion.chunk", "model": MODEL, "choices": [choice], **more}


def event(data):
    return f"data: {data if isinstance(data, str) else json.dumps(data)}\n\n".encode()


class Answer:
    """A chunked HTTP answer, written piece by piece."""

    def __init__(self, writer):
        self.writer = writer

    def head(self, status="200 OK", kind="text/event-stream"):
        self.writer.write(f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nTransfer-Encoding: chunked\r\n\r\n".encode())

    async def send(self, data):
        self.writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        await self.writer.drain()

    async def end(self):
        self.writer.write(b"0\r\n\r\n")
        await self.writer.drain()

    async def whole(self, body, status="200 OK"):
        data = json.dumps(body).encode()
        self.writer.write(f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\n"
                          f"Content-Length: {len(data)}\r\n\r\n".encode() + data)
        await self.writer.drain()

    def cut(self):
        self.writer.transport.abort()


def wanted_tokens(body, otherwise=8):
    return body.get("max_completion_tokens") or body.get("max_tokens") or otherwise


def usage(body, tokens):
    words = sum(len(message["content"].split()) for message in body.get("messages", []))
    words += len(body.get("prompt", "").split())
    return {"prompt_tokens": words + 5, "completion_tokens": tokens, "total_tokens": words + 5 + tokens}


def streaming(first=0.02, gap=0.005, per_chunk=1, with_usage=True, reasoning=0, tokens=None, field="reasoning"):
    """Answers as a well-behaved server: role, text in chunks, finish, usage, [DONE]."""

    async def answer(request, out):
        count = tokens or wanted_tokens(request.body)
        if not request.body.get("stream"):
            await asyncio.sleep(first)
            words = "word " * count
            choice = {"index": 0, "finish_reason": "length", "text": words,
                      "message": {"role": "assistant", "content": words}}
            return await out.whole({"choices": [choice], "usage": usage(request.body, count)})
        out.head()
        await out.send(event(chunk({"role": "assistant", "content": ""})))
        start = time.monotonic()
        for number, at in enumerate(range(0, count, per_chunk)):
            await asyncio.sleep(max(0.0, start + first + number * gap - time.monotonic()))
            text = "word " * min(per_chunk, count - at)
            before = time.monotonic()
            if request.path.endswith("chat/completions"):
                await out.send(event(chunk({field if at < reasoning else "content": text})))
            else:
                await out.send(event({"choices": [{"index": 0, "text": text, "finish_reason": None}]}))
            request.sent.append((before, time.monotonic()))
        await out.send(event(chunk({}, "length")))
        if with_usage:
            await out.send(event({"choices": [], "usage": usage(request.body, count)}))
        await out.send(event("[DONE]"))
        await out.end()

    return answer


def responses(first=0.02, gap=0.005):
    """The same over OpenAI's Responses API: events with a type, usage in the last one, no [DONE]."""

    async def answer(request, out):
        count = request.body["max_output_tokens"]
        words = sum(len(message["content"].split()) for message in request.body["input"])
        end = {"object": "response", "error": None, "status": "incomplete",
               "usage": {"input_tokens": words + 5, "output_tokens": count, "total_tokens": words + 5 + count}}
        if not request.body["stream"]:
            text = {"type": "output_text", "text": "word " * count}
            return await out.whole({**end, "output": [{"type": "message", "role": "assistant", "content": [text]}]})
        out.head()
        start = time.monotonic()
        await out.send(event({"type": "response.created", "response": {"object": "response", "error": None}}))
        for number in range(count):
            await asyncio.sleep(max(0.0, start + first + number * gap - time.monotonic()))
            await out.send(b"event: response.output_text.delta\n" +
                           event({"type": "response.output_text.delta", "delta": "word "}))
        await out.send(event({"type": "response.incomplete", "response": end}))
        await out.end()

    return answer


def refusing(status="400 Bad Request", message="no"):
    async def answer(_, out):
        await out.whole({"error": {"message": message, "type": "BadRequestError", "code": 400}}, status)

    return answer


class TimedServer:
    def __init__(self, behaviour, models=(MODEL,), metrics=None):
        self.behaviour = behaviour
        self.models = models
        self.metrics = metrics
        self.requests = []
        self.running = 0
        self.most_running = 0
        self.port = None
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self._ready.wait(10)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def _run(self):
        asyncio.set_event_loop(self._loop)

        async def begin():
            server = await asyncio.start_server(self._connection, "127.0.0.1", 0, backlog=2048)
            self.port = server.sockets[0].getsockname()[1]
            self._ready.set()

        self._loop.run_until_complete(begin())
        self._loop.run_forever()

    def stop(self):
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    async def _connection(self, reader, writer):
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while await self._exchange(reader, writer):
                pass
        writer.close()

    async def _exchange(self, reader, writer):
        line = await reader.readline()
        if not line:
            return False
        method, path, _ = line.decode().split(" ", 2)
        headers = {}
        while (line := await reader.readline()).strip():
            name, value = line.decode().split(":", 1)
            headers[name.strip().lower()] = value.strip()
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        out = Answer(writer)
        if method == "GET" and path.endswith("/v1/models"):
            await out.whole({"data": [{"id": name, "max_model_len": 100000} for name in self.models]})
        elif method == "GET" and path.endswith("/metrics") and self.metrics:
            text = self.metrics().encode()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(text) + text)
        elif method == "GET":
            await out.whole({"error": "not found"}, "404 Not Found")
        else:
            await self._generate(path, headers, json.loads(body), out)
        return True

    async def _generate(self, path, headers, body, out):
        request = Request(path, headers, body, len(self.requests))
        self.requests.append(request)
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            await self.behaviour(request, out)
        finally:
            self.running -= 1


@contextlib.contextmanager
def timed(behaviour=None, **options):
    server = TimedServer(behaviour or streaming(), **options)
    try:
        yield server
    finally:
        server.stop()
