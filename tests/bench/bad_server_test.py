"""Servers that stall, close, refuse, send garbage or say nothing about tokens: a sentence, and the rest goes on."""
import asyncio
import tempfile
import unittest

from bench_process import TINY_TOKENIZER, bench, lines, measured, run, summary
from load_server import chunk, event, refusing, streaming, timed

SHORT = ["--isl", "20", "--osl", "8", "--no-warmup"]


def sometimes(bad, every=2):
    """Every other request goes wrong."""
    good = streaming()

    async def answer(request, out):
        await (bad if request.number % every == 0 else good)(request, out)

    return answer


async def garbage(_, out):
    out.writer.write(b"\x00\xff\x13 no HTTP at all\r\n\r\n")
    await out.writer.drain()
    out.cut()


async def not_json(_, out):
    out.head()
    await out.send(b"data: {oops\n\ndata: [DONE]\n\n")
    await out.end()


async def close_at_once(_, out):
    out.cut()


async def cut_stream(_, out):
    out.head()
    await out.send(event(chunk({"content": "half"})))
    out.cut()


async def stop_without_end(_, out):
    out.head()
    await out.send(event(chunk({"content": "half"})))
    await out.end()


async def error_in_stream(_, out):
    out.head()
    await out.send(event(chunk({"content": "half"})))
    await out.send(event({"error": {"message": "engine died", "code": 500}}))
    await out.send(event("[DONE]"))
    await out.end()


async def stall(_, out):
    out.head()
    await out.send(event(chunk({"content": "half"})))
    await asyncio.sleep(30)


async def nothing_said(_, out):
    out.head()
    await out.send(event(chunk({}, "stop")))
    await out.send(event("[DONE]"))
    await out.end()


class BadServerTest(unittest.TestCase):
    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.folder = self._folder.name
        self.addCleanup(self._folder.cleanup)

    def half_fails(self, bad, kind, *flags):
        with timed(sometimes(bad)) as server:
            done = bench(server, self.folder, *SHORT, "--request-count", "10", "--concurrency", "2", "--mode",
                         "seed-exact", *flags)
        self.assertEqual(done.returncode, 4, done.stdout + done.stderr)
        result = summary(self.folder)
        self.assertEqual(result["request_count"]["avg"], 5)
        self.assertEqual(result["error_request_count"]["avg"], 5)
        self.assertEqual({entry["error_details"]["type"] for entry in result["error_summary"]}, {kind})
        self.assertIn(kind, done.stdout)
        return result

    def test_garbage(self):
        self.half_fails(garbage, "ClientResponseError")

    def test_not_json(self):
        self.half_fails(not_json, "InvalidInferenceResultError")

    def test_cut_stream(self):
        self.half_fails(cut_stream, "ClientPayloadError")

    def test_close_at_once(self):
        self.half_fails(close_at_once, "ClientPayloadError", "--connection-reuse-strategy", "never")

    def test_stream_without_its_end(self):
        self.half_fails(stop_without_end, "ClientPayloadError")

    def test_error_inside_a_stream(self):
        self.half_fails(error_in_stream, "ErrorInStream")

    def test_no_content(self):
        self.half_fails(nothing_said, "InvalidInferenceResultError")

    def test_stall_runs_into_the_time_limit(self):
        self.half_fails(stall, "TimeoutError", "--request-timeout-seconds", "0.5")

    def test_refusal_keeps_code_and_message(self):
        result = self.half_fails(refusing("429 Too Many Requests", "later"), "Too Many Requests")
        error = result["error_summary"][0]["error_details"]
        self.assertEqual(error["code"], 429)
        self.assertIn("later", error["message"])
        records = measured(lines(self.folder))
        self.assertEqual(sum("error" in record for record in records), 5)

    def test_refuses_everything(self):
        """Every cell stops after a few, the next one is still tried, and the files tell."""
        with timed(refusing()) as server:
            done = bench(server, self.folder, *SHORT, "--request-count", "1000", "--concurrency", "1,4")
            self.assertLess(len(server.requests), 100)
        self.assertEqual(done.returncode, 4)
        self.assertIn("answers 400 to the first request", done.stderr)
        self.assertIn("more than the limit of 10 %", done.stdout)
        for concurrency in (1, 4):
            result = summary(self.folder, f"concurrency_{concurrency}")
            self.assertEqual(result["request_count"]["avg"], 0)
            self.assertFalse(result["is_complete"])

    def test_no_usage(self):
        with timed(streaming(with_usage=False)) as server:
            done = bench(server, self.folder, *SHORT, "--request-count", "4")
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn("without usage", done.stdout)
            self.assertNotIn("output_sequence_length", summary(self.folder))
            done = bench(server, self.folder, *SHORT, "--request-count", "4", "--force", "--tokenizer", TINY_TOKENIZER)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertGreater(summary(self.folder)["total_osl"]["avg"], 0)

    def test_cancelled_requests(self):
        with timed(streaming(first=0.5)) as server:
            done = bench(server, self.folder, *SHORT, "--request-count", "4", "--request-cancellation-rate", "100",
                         "--request-cancellation-delay", "0.05")
        self.assertEqual(done.returncode, 4)
        result = summary(self.folder)
        self.assertEqual(result["error_request_count"]["avg"], 4)
        self.assertEqual(result["error_summary"][0]["error_details"]["code"], 499)

    def test_idle_connection_closed_by_the_server(self):
        """The request is sent again once, on a new connection, and nothing fails."""
        async def answer_and_close(request, out):
            await streaming()(request, out)
            out.writer.close()

        with timed(answer_and_close) as server:
            done = bench(server, self.folder, *SHORT, "--request-count", "6", "--concurrency", "2")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_nobody_there(self):
        done = run("bench", "run", "--url", "http://127.0.0.1:9", "--artifact-dir", self.folder)
        self.assertEqual(done.returncode, 1)
        self.assertIn("no server at 127.0.0.1:9", done.stderr)


if __name__ == "__main__":
    unittest.main()
