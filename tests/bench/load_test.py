"""What is sent and when, and what is measured of answers with known times."""
import asyncio
import os
import signal
import statistics
import subprocess
import tempfile
import time
import unittest

from bench_process import FULGUR, PATIENT, TINY_TOKENIZER, bench, lines, load, measured, run, summary
from fulgur_process import scripted
from load_server import responses, streaming, timed

SHORT = ["--isl", "20", "--osl", "8", "--no-warmup"]


def lateness_ms(*folder):
    """How far a time may be off: what the program says of its own lateness, for both ends of a span."""
    return 3 + 2 * summary(*folder)["fulgur_client_lag"]["max"]


class Case(unittest.TestCase):
    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.folder = self._folder.name
        self.addCleanup(self._folder.cleanup)

    def check(self, done, code=0):
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def check_between(self, value, bounds, slack):
        self.assertGreaterEqual(value, bounds[0] - slack)
        self.assertLessEqual(value, bounds[1] + slack)


class ClosedLoopTest(Case):
    def test_sends_all_and_never_more_at_a_time(self):
        with timed() as server:
            done = self.check(bench(server, self.folder, *SHORT, "--concurrency", "3", "--request-count", "12"))
            self.assertIn("12 requests, 0 failed", done.stdout)
            self.assertEqual(server.most_running, 3)
        result = summary(self.folder)
        self.assertEqual(result["request_count"]["avg"], 12)
        self.assertEqual(result["total_osl"]["avg"], 12 * 8)
        self.assertEqual(result["output_sequence_length"]["min"], 8)
        self.assertTrue(result["is_complete"])
        self.assertEqual(len(measured(lines(self.folder))), 12)
        self.assertEqual(len(load(self.folder, "inputs.json")["data"]), 12)
        self.assertEqual(load(self.folder, "fulgur_run.json")["details"]["complete"], "true")

    def test_times_are_those_of_the_server(self):
        with timed(streaming(first=0.1, gap=0.03, per_chunk=4)) as server:
            self.check(bench(server, self.folder, "--osl", "16", "--no-warmup", "--request-count", "4"))
        requests = server.requests[1:]
        records = measured(lines(self.folder))
        self.assertEqual(len(records), len(requests))
        late = lateness_ms(self.folder)
        for request, record in zip(requests, records):
            metrics = {tag: entry["value"] for tag, entry in record["metrics"].items()}
            decode = metrics["request_latency"] - metrics["time_to_first_token"]
            self.check_between(decode, request.decode_ms(), late)
            self.assertGreaterEqual(decode, 3 * 30 - late)
            self.assertAlmostEqual(metrics["inter_token_latency"], decode / 15, delta=0.001)
            self.assertAlmostEqual(sum(metrics["inter_chunk_latency"]), decode, delta=0.001)
            self.assertEqual(len(metrics["inter_chunk_latency"]), 3)
            # The server reads the request after it was sent and before it answers.
            self.assertGreaterEqual(metrics["time_to_first_token"], (request.sent[0][0] - request.time) * 1000 - 1)
            self.assertGreaterEqual(metrics["time_to_first_token"], 99)
        self.assertLess(min(record["metrics"]["time_to_first_token"]["value"] for record in records), 100 + 40 + late)

    def test_counts_tokens_where_a_chunk_carries_several(self):
        """A server with speculation: 24 tokens in nine chunks, whoever counts them."""
        answer = {"text": " ".join(["word"] * 40), "delay_ms": 30, "tokens_per_step": [4, 1, 3]}
        with scripted(answer) as server:
            for counting in ([], ["--tokenizer", TINY_TOKENIZER, "--use-client-token-count"]):
                self.check(run("bench", "run", "--url", server.address, "--artifact-dir", self.folder, *PATIENT, "--isl",
                               "20", "--osl", "24", "--no-warmup", "--request-count", "3", "--force",
                               "--extra-inputs", "ignore_eos:true", *counting))
                result = summary(self.folder)
                self.assertEqual(result["output_sequence_length"]["avg"], 24)
                self.assertEqual(result["total_osl"]["avg"], 72)
                self.assertAlmostEqual(result["fulgur_tokens_per_chunk"]["avg"], 24 / 9, delta=0.3)
                self.assertGreaterEqual(result["inter_chunk_latency"]["p50"], 25)
                per_token = (result["request_latency"]["avg"] - result["time_to_first_token"]["avg"]) / 23
                self.assertAlmostEqual(result["inter_token_latency"]["avg"], per_token, delta=0.01)
                # Nine rounds of up to three drafts, of which 15 stand.
                self.assertAlmostEqual(result["spec_decode_acceptance_length"]["avg"], 24 / 9, delta=0.01)

    def test_reasoning_counts_and_both_spellings_are_read(self):
        for field in ("reasoning", "reasoning_content"):
            with timed(streaming(first=0.2, gap=0.2, per_chunk=4, reasoning=4, field=field)) as server:
                self.check(bench(server, self.folder, *SHORT, "--request-count", "1", "--force"))
            result = summary(self.folder)
            first, visible = result["time_to_first_token"]["avg"], result["time_to_first_output_token"]["avg"]
            self.assertGreaterEqual(first, 199)
            self.check_between(visible - first, server.requests[1].decode_ms(), lateness_ms(self.folder))

    def test_warmup_is_excluded_and_staggers(self):
        with timed(streaming(first=0.1, gap=0)) as server:
            self.check(bench(server, self.folder, "--osl", "4", "--concurrency", "4", "--request-count", "16"))
            self.assertEqual(len(server.requests), 1 + 4 + 16)  # a probe, the warm-up, the load
        records = lines(self.folder)
        self.assertEqual(len(records), 20)
        self.assertEqual(len(measured(records)), 16)
        starts = sorted(record["metadata"]["request_start_ns"] for record in measured(records))
        self.assertGreater((starts[3] - starts[0]) / 1e6, 50)
        self.assertEqual(summary(self.folder)["warmup_metrics"]["request_count"]["avg"], 4)

    def test_sweep_writes_a_folder_a_cell(self):
        with timed() as server:
            self.check(bench(server, self.folder, *SHORT, "--concurrency", "1,2", "--request-count", "4"))
        for concurrency in (1, 2):
            self.assertEqual(summary(self.folder, f"concurrency_{concurrency}")["request_count"]["avg"], 4)

    def test_completions_and_answers_in_one_piece(self):
        for flags in (["--endpoint-type", "completions"], ["--no-streaming"]):
            with timed() as server:
                self.check(bench(server, self.folder, *SHORT, "--request-count", "3", "--force", *flags))
                self.assertTrue(server.requests[-1].path.endswith("completions"))
            self.assertEqual(summary(self.folder)["total_osl"]["avg"], 24)

    def test_responses_endpoint(self):
        for flags in ([], ["--no-streaming"]):
            with timed(responses(first=0.1)) as server:
                self.check(bench(server, self.folder, *SHORT, "--request-count", "3", "--force", "--endpoint-type",
                                 "responses", *flags))
                request = server.requests[-1]
                self.assertEqual(request.path, "/v1/responses")
                self.assertEqual(request.body["input"][0]["role"], "user")
                self.assertNotIn("stream_options", request.body)
            result = summary(self.folder)
            self.assertEqual(result["request_count"]["avg"], 3)
            self.assertEqual(result["total_osl"]["avg"], 24)
            self.assertEqual(result["input_config"]["endpoint"]["type"], "responses")
            if not flags:
                self.assertGreaterEqual(result["time_to_first_token"]["min"], 99)

    def test_goodput(self):
        with timed(streaming(first=0.05)) as server:
            self.check(bench(server, self.folder, *SHORT, "--request-count", "3", "--goodput", "ttft:1000", "e2el:1"))
        result = summary(self.folder)
        self.assertEqual(result["good_request_count"]["avg"], 0)


class RateTest(Case):
    def gaps(self, server):
        times = [request.time for request in server.requests[1:]]
        return [b - a for a, b in zip(times, times[1:])]

    def test_constant_rate_keeps_time_while_answers_wait(self):
        with timed(streaming(first=0.5, gap=0)) as server:
            self.check(bench(server, self.folder, *SHORT, "--request-rate", "50", "--arrival-pattern", "constant",
                             "--request-count", "40"))
            self.assertAlmostEqual(statistics.median(self.gaps(server)), 0.02, delta=0.008)
            self.assertGreater(server.most_running, 10)
        planned = sorted(record["metadata"]["credit_issued_ns"] for record in measured(lines(self.folder)))
        self.assertAlmostEqual((planned[-1] - planned[0]) / 39e9, 0.02, delta=0.0005)

    def test_a_limit_delays_sends_and_the_delay_is_measured(self):
        with timed(streaming(first=0.1, gap=0)) as server:
            self.check(bench(server, self.folder, *SHORT, "--request-rate", "100", "--concurrency", "1",
                             "--request-count", "10"))
            self.assertEqual(server.most_running, 1)
        result = summary(self.folder)
        self.assertGreater(result["credit_to_start_latency"]["max"], 500)
        self.assertGreater(result["effective_latency"]["max"], 600)
        self.assertLess(result["request_latency"]["p50"], 300)

    def test_duration_ends_and_unfinished_requests_are_no_failures(self):
        with timed(streaming(first=0.01, gap=0.2)) as server:
            start = time.monotonic()
            done = self.check(bench(server, self.folder, *SHORT, "--concurrency", "2", "--benchmark-duration", "1",
                                    "--benchmark-grace-period", "0.2"), 4)
            self.assertLess(time.monotonic() - start, 10)
        self.assertIn("still ran at the end", done.stdout)
        self.assertIn("no request ended well", done.stdout)

    def test_trace_is_replayed_in_time_and_shares_prefixes(self):
        trace = os.path.join(self.folder, "trace.jsonl")
        with open(trace, "w", encoding="utf-8") as file:
            for at in (1000, 1200, 1500):
                file.write('{"timestamp": %d, "input_length": 24, "output_length": 4, "hash_ids": [7, %d]}\n' % (at, at))
        with timed() as server:
            self.check(bench(server, self.folder, "--input-file", trace, "--isl-block-size", "16", "--no-warmup",
                             "--tokenizer", TINY_TOKENIZER))
            requests = server.requests[1:]
            texts = [request.body["messages"][0]["content"] for request in requests]
            shared = os.path.commonprefix(texts)
            self.assertEqual(len(shared.split()), 16)
        self.assertEqual(summary(self.folder)["input_sequence_length"]["avg"], 24)
        self.check_times(measured(lines(self.folder)), [0, 0.2, 0.5])

    def check_times(self, records, offsets):
        """Sends were planned at these times, and none left before its time."""
        times = [record["metadata"] for record in records]
        planned = sorted(time["credit_issued_ns"] for time in times)
        for at, offset in zip(planned, offsets):
            self.assertAlmostEqual((at - planned[0]) / 1e9, offset, delta=0.002)
        for one in times:
            self.assertGreaterEqual(one["request_start_ns"], one["credit_issued_ns"] - 1_000_000)

    def test_rate_sweep(self):
        with timed(streaming(first=0, gap=0)) as server:
            self.check(bench(server, self.folder, *SHORT, "--rate-sweep", "50,100.5", "--arrival-pattern", "constant",
                             "--request-count", "10"))
        for rate in (50, 100.5):
            folder = f"rate_{rate}"
            self.assertEqual(summary(self.folder, folder)["request_count"]["avg"], 10)
            self.check_times(measured(lines(self.folder, folder)), [number / rate for number in range(10)])

    def test_finds_the_highest_rate_that_meets_the_objectives(self):
        """A server that works on one request at a time, 20 ms each: at most 50 a second."""
        turn = asyncio.Lock()

        async def one_at_a_time(request, out):
            async with turn:
                await streaming(first=0.02, gap=0)(request, out)

        with timed(one_at_a_time) as server:
            done = self.check(bench(server, self.folder, *SHORT, "--find-max-rate", "--request-rate", "20",
                                    "--arrival-pattern", "constant", "--request-count", "50", "--goodput", "ttft:200",
                                    "--slo-attainment", "0.9"))
        found = load(self.folder, "max_rate.json")
        highest, lowest = found["max_rate"], found["lowest_rate_that_fails"]
        self.assertIn(f"highest rate with 90 % within the objectives: {highest:.4g} requests/s", done.stdout)
        self.assertLess(highest, lowest)
        self.assertLess(lowest / highest, 1.051)
        # Fifty requests may be answered within 200 ms at a little more than the server bears for ever.
        self.assertLess(highest, 70)
        self.assertGreater(lowest, 5)
        self.assertEqual({step["requests"] for step in found["steps"] if step["held"]}, {50})
        for step in found["steps"]:
            self.assertEqual(step["held"], step["attained"] >= 0.9)

    def test_users_in_a_rhythm(self):
        with timed() as server:
            self.check(bench(server, self.folder, *SHORT, "--user-centric-rate", "20", "--num-users", "4",
                             "--request-count", "20"))
            self.assertEqual(len(server.requests), 1 + 20)
        planned = sorted(record["metadata"]["credit_issued_ns"] for record in measured(lines(self.folder)))
        self.assertAlmostEqual((planned[-1] - planned[0]) / 19e9, 0.05, delta=0.01)


class ContentTest(Case):
    def test_prompts_have_their_length_and_differ(self):
        with timed() as server:
            self.check(bench(server, self.folder, "--isl", "100", "--osl", "2", "--no-warmup", "--request-count", "8",
                             "--tokenizer", TINY_TOKENIZER))
            texts = {request.body["messages"][0]["content"] for request in server.requests[1:]}
            self.assertEqual(len(texts), 8)
        result = summary(self.folder)["input_sequence_length"]
        self.assertEqual((result["min"], result["max"]), (100, 100))

    def test_same_seed_same_requests(self):
        seen = []
        for seed in ("7", "7", "8"):
            with timed() as server:
                self.check(bench(server, self.folder, *SHORT, "--seq-dist", "20|5,8|2:60;40,4:40", "--random-seed", seed,
                                 "--request-count", "6", "--force"))
                seen.append([request.body for request in server.requests[1:]])
        self.assertEqual(seen[0], seen[1])
        self.assertNotEqual(seen[0], seen[2])

    def test_min_tokens_follows_each_request(self):
        with timed() as server:
            self.check(bench(server, self.folder, "--seq-dist", "16,8|4:100", "--no-warmup", "--request-count", "20",
                             "--extra-inputs", "min_tokens:osl", "--extra-inputs", "ignore_eos:true"))
            for request in server.requests[1:]:
                self.assertEqual(request.body["min_tokens"], request.body["max_completion_tokens"])
                self.assertIs(request.body["ignore_eos"], True)

    def test_conversations_carry_the_answers(self):
        with timed() as server:
            self.check(bench(server, self.folder, *SHORT, "--num-conversations", "2", "--session-turns-mean", "3",
                             "--session-header", "X-Session-ID", "--connection-reuse-strategy",
                             "sticky-user-sessions"))
            requests = server.requests[1:]
            self.assertEqual(len(requests), 6)
            roles = [message["role"] for message in requests[2].body["messages"]]
            self.assertEqual(roles, ["user", "assistant", "user", "assistant", "user"])
            self.assertEqual(len({request.headers["x-session-id"] for request in requests}), 2)
        turns = [record["metadata"]["turn_index"] for record in measured(lines(self.folder))]
        self.assertEqual(sorted(turns), [0, 0, 1, 1, 2, 2])
        result = summary(self.folder)
        self.assertEqual(result["fulgur_turn_3_time_to_first_token"]["count"], 2)
        self.assertEqual(result["fulgur_later_turns_time_to_first_token"]["count"], 4)
        self.assertNotIn("fulgur_turn_4_time_to_first_token", result)

    def test_prefixes_are_shared_and_warmed(self):
        with timed() as server:
            self.check(bench(server, self.folder, *SHORT, "--prefix-prompt-length", "40", "--num-prefix-prompts", "2",
                             "--warm-prefixes", "--request-count", "8", "--tokenizer", TINY_TOKENIZER))
            texts = [request.body["messages"][0]["content"] for request in server.requests[1:]]
            prefixes = texts[:2]
            self.assertTrue(all(text.startswith(tuple(prefixes)) for text in texts[2:]))
        self.assertEqual(summary(self.folder)["input_sequence_length"]["avg"], 60)

    def test_file_of_prompts(self):
        path = os.path.join(self.folder, "prompts.jsonl")
        with open(path, "w", encoding="utf-8") as file:
            file.write('{"text": "one", "output_length": 3}\nnot json\n{"turns": ["two", {"text": "three"}]}\n')
        with timed() as server:
            self.check(bench(server, self.folder, "--input-file", path, "--no-warmup"))
            self.assertEqual(len(server.requests[1:]), 3)
            self.assertEqual(server.requests[1].body["max_completion_tokens"], 3)


class CommandTest(Case):
    def test_suite_smoke_and_resume(self):
        with timed() as server:
            self.check(bench(server, self.folder, "--suite", "smoke"))
            for concurrency in (1, 2):
                self.assertEqual(summary(self.folder, f"smoke-c{concurrency}")["request_count"]["avg"], 8)
            done = self.check(bench(server, self.folder, "--suite", "smoke"))
            self.assertIn("0 cells measured, 2 skipped", done.stdout)
            done = self.check(bench(server, self.folder, "--suite", "smoke", "--random-seed", "5"))
            self.assertIn("2 cells measured", done.stdout)

    def test_time_slices(self):
        with timed(streaming(first=0, gap=0)) as server:
            self.check(bench(server, self.folder, *SHORT, "--request-rate", "20", "--arrival-pattern", "constant",
                             "--request-count", "30", "--slice-duration", "0.5"))
        slices = load(self.folder, "profile_export_aiperf_timeslices.json")["timeslices"]
        starts = [record["metadata"]["request_start_ns"] for record in measured(lines(self.folder))]
        self.assertEqual(sum(part["request_count"]["avg"] for part in slices), 30)
        for part in slices:
            self.assertEqual(part["end_ns"] - part["start_ns"], 500_000_000)
            sent = sum(part["start_ns"] <= start < part["end_ns"] for start in starts)
            self.assertAlmostEqual(part["request_count"]["avg"], sent, delta=1)
            self.assertAlmostEqual(part["request_throughput"]["avg"], 2 * part["request_count"]["avg"], places=6)

    def test_repetitions_are_summed_up(self):
        with timed() as server:
            self.check(bench(server, self.folder, *SHORT, "--request-count", "4", "--num-profile-runs", "3",
                             "--confidence-level", "0.9"))
        folders = [os.path.join("profile_runs", f"run_000{number}") for number in (1, 2, 3)]
        values = [summary(self.folder, folder)["request_latency"]["p50"] for folder in folders]
        told = load(self.folder, "aggregate", "profile_export_aiperf_aggregate.json")
        self.assertEqual(told["metadata"]["num_successful_runs"], 3)
        self.assertEqual(told["metadata"]["failed_runs"], [])
        metric = told["metrics"]["request_latency_p50"]
        mean, deviation = statistics.mean(values), statistics.stdev(values)
        self.assertAlmostEqual(metric["mean"], mean, places=6)
        self.assertAlmostEqual(metric["std"], deviation, places=6)
        self.assertAlmostEqual(metric["t_critical"], 2.919986, places=5)
        self.assertAlmostEqual(metric["ci_high"] - metric["mean"], 2.919986 * deviation / 3 ** 0.5, places=4)
        self.assertEqual((metric["unit"], told["metrics"]["request_count_avg"]["mean"]), ("ms", 4))

    def test_published_aiperf_command(self):
        """As published: min_tokens is constant, so that requests whose length is drawn below it are refused."""
        async def like_vllm(request, out):
            if request.body.get("min_tokens", 0) > request.body["max_completion_tokens"]:
                return await out.whole({"error": {"message": "min_tokens must be less than or equal to max_tokens"}},
                                       "400 Bad Request")
            return await streaming(first=0, gap=0, per_chunk=512)(request, out)

        with timed(like_vllm) as server:
            done = run("bench", "profile", "--model", "timed", "--streaming", "--endpoint-type", "chat", "--tokenizer",
                       TINY_TOKENIZER, "--url", server.url, "--concurrency", "4", "--request-count", "50", "--seq-dist",
                       "164|10,4096|256:100", "--random-seed", "42", "--ui", "simple", "--extra-inputs",
                       "ignore_eos:true", "--extra-inputs", "min_tokens:4096", "--output-artifact-dir", self.folder, *PATIENT)
            self.check(done, 4)
            self.assertEqual(len(server.requests), 50)
        result = summary(self.folder)
        failed = result["error_request_count"]["avg"]
        self.assertEqual(result["request_count"]["avg"] + failed, 50)
        self.assertGreater(failed, 10)
        self.assertEqual(result["error_summary"][0]["error_details"]["code"], 400)

    def test_vllm_command(self):
        with timed() as server:
            host, port = server.url.removeprefix("http://").split(":")
            self.check(run("bench", "serve", "--backend", "openai-chat", "--endpoint", "/v1/chat/completions", "--host",
                           host, "--port", port, "--model", "timed", "--dataset-name", "random", "--random-input-len",
                           "16", "--random-output-len", "8", "--num-prompts", "6", "--max-concurrency", "2",
                           "--ignore-eos", "--seed", "0", "--save-result", "--save-detailed", "--result-dir",
                           self.folder, "--result-filename", "out.json", "--artifact-dir", self.folder, "--metadata",
                           "tp=4", "--percentile-metrics", "ttft,tpot", *PATIENT))
            self.assertEqual(len(server.requests), 6)
        result = load(self.folder, "out.json")
        self.assertEqual((result["completed"], result["failed"], result["tp"]), (6, 0, "4"))
        self.assertEqual(result["output_lens"], [8] * 6)
        bounds = zip(*(request.decode_ms() for request in server.requests))
        self.check_between(result["mean_itl_ms"] * 7, [statistics.mean(side) for side in bounds],
                           lateness_ms(self.folder))

    def test_secrets_stay_out_of_files(self):
        with timed() as server:
            self.check(bench(server, self.folder, *SHORT, "--request-count", "2", "--api-key", "hush-1", "--header",
                             "X-Key: hush-2"))
            self.assertEqual(server.requests[-1].headers["authorization"], "Bearer hush-1")
            self.assertEqual(server.requests[-1].headers["x-key"], "hush-2")
        for name in os.listdir(self.folder):
            with open(os.path.join(self.folder, name), encoding="utf-8") as file:
                self.assertNotIn("hush", file.read(), name)

    def test_mistakes(self):
        for flags, sentence in ((["--concurrency", "0"], "--concurrency"), (["--seq-dist", "1,2"], "--seq-dist"),
                                (["--sute", "smoke"], "--suite"), (["--suite", "none"], "--suite none"),
                                (["--rate-sweep", "1,x"], "--rate-sweep"), (["--find-max-rate"], "--goodput"),
                                (["--request-rate", "-1"], "--request-rate"), (["--goodput", "x"], "--goodput"),
                                (["--extra-inputs", "x"], "--extra-inputs"), (["word"], "word")):
            done = self.check(run("bench", "run", *flags), 2)
            self.assertIn(sentence, done.stderr)

    def test_interrupt_keeps_what_was_measured(self):
        with timed(streaming(first=0.05, gap=0.01)) as server:
            process = subprocess.Popen([FULGUR, "bench", "run", "--url", server.url, "--artifact-dir", self.folder,
                                        *SHORT, "--request-count", "1000", "--concurrency", "2"],
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            while len(server.requests) < 10:
                time.sleep(0.02)
            process.send_signal(signal.SIGINT)
            out, _ = process.communicate(timeout=20)
        self.assertEqual(process.returncode, 4)
        self.assertIn("interrupted", out)
        result = summary(self.folder)
        self.assertGreaterEqual(result["request_count"]["avg"], 4)
        self.assertTrue(result["was_cancelled"])
        self.assertNotIn("error_request_count", result)


if __name__ == "__main__":
    unittest.main()
