"""What a streamed token costs the load generator: 1,000 connections with 20 tokens a second each.

Starts a server that replays a script, drives it for some seconds and prints tokens per second, the load generator's own
lag and the part of a core that it used. Give the program; with --realtime the load generator gets a core for itself
even on a busy machine (needs root)."""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOKENIZER = os.path.join(ROOT, "src/text/testdata/tiny_tokenizer.json")


def start_server(program, folder, delay_ms):
    script = os.path.join(folder, "script.jsonl")
    with open(script, "w", encoding="utf-8") as file:
        file.write(json.dumps({"text": "</think>" + "a " * 50, "delay_ms": delay_ms}) + "\n")
    server = subprocess.Popen([program, "serve", "--scripted-output", script, "--tokenizer", TOKENIZER,
                               "--served-model-name", "script", "--port", "0"], stderr=subprocess.PIPE, text=True)
    for line in server.stderr:
        found = re.search(r" serving .* at (http://[0-9.:]+)$", line.strip())
        if found:
            return server, found.group(1)
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
        server, url = start_server(options.program, folder, options.delay_ms)
        tokens = options.seconds * 1000 // options.delay_ms // 2
        command = [options.program, "bench", "run", "--url", url, "--artifact-dir", folder, "--isl", "8", "--osl",
                   str(tokens), "--concurrency", str(options.connections), "--request-count",
                   str(2 * options.connections), "--no-warmup", "--concurrency-ramp-duration", "2", "--extra-inputs",
                   "ignore_eos:true", "--no-inputs-json", "--export-level", "summary", "--ui", "none"]
        if options.realtime:
            command = ["chrt", "--fifo", "10", *command]
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
