"""What a streamed token costs the load generator: 1,000 connections with 20 tokens a second each.

Starts a server that replays a script, drives it for some seconds and prints tokens per second, the load generator's own
lag and the part of a core that it used. Give the program; with --realtime both programs go before all others on a busy
machine (needs root)."""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOKENIZER = os.path.join(ROOT, "src/text/testdata/tiny_tokenizer.json")


def start_server(program, folder, delay_ms, before):
    script = os.path.join(folder, "script.jsonl")
    with open(script, "w", encoding="utf-8") as file:
        file.write(json.dumps({"text": "</think>" + "a " * 50, "delay_ms": delay_ms}) + "\n")
    log = os.path.join(folder, "server.log")
    with open(log, "w", encoding="utf-8") as file:
        server = subprocess.Popen([*before, program, "serve", "--scripted-output", script, "--tokenizer", TOKENIZER,
                                   "--served-model-name", "script", "--port", "0"], stderr=file)
    for _ in range(100):
        time.sleep(0.1)
        with open(log, encoding="utf-8") as file:
            found = re.search(r" serving .* at (http://[0-9.:]+)$", file.read(), re.MULTILINE)
        if found:
            return server, found.group(1)
    server.kill()
    sys.exit("the server did not start")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--connections", type=int, default=1000)
    parser.add_argument("--delay-ms", type=int, default=50)
    parser.add_argument("--seconds", type=int, default=15)
    parser.add_argument("--realtime", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        realtime = ["chrt", "--fifo", "10"] if options.realtime else []
        server, url = start_server(options.program, folder, options.delay_ms, realtime)
        tokens = options.seconds * 1000 // options.delay_ms // 2
        command = [*realtime, options.program, "bench", "run", "--url", url, "--artifact-dir", folder, "--isl", "8", "--osl",
                   str(tokens), "--concurrency", str(options.connections), "--request-count",
                   str(2 * options.connections), "--no-warmup", "--concurrency-ramp-duration", "2", "--extra-inputs",
                   "ignore_eos:true", "--no-inputs-json", "--export-level", "summary", "--ui", "none"]
        try:
            print(subprocess.run(command, capture_output=True, text=True, check=False).stdout)
        finally:
            server.terminate()
            server.wait()
        with open(os.path.join(folder, "profile_export_aiperf.json"), encoding="utf-8") as file:
            result = json.load(file)
        lag = result["fulgur_client_lag"]
        rate = result["output_token_throughput"]["avg"]
        cpu = result["fulgur_client_cpu"]["avg"]
        print(f"{rate:.0f} tokens/s over {options.connections} connections; client lag p50 {lag['p50']:.2f} ms, "
              f"p99 {lag['p99']:.2f} ms; {cpu:.2f} of a core, {cpu / rate * 1e6:.1f} us a token")


if __name__ == "__main__":
    main()
