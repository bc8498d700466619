"""Drafters behind the real server: random ones, the demo model's own, and one from a folder of its own."""
import json
import os
import tempfile
import unittest
import urllib.request

from fulgur_process import ROOT, TINY_MODEL, TINY_TOKENIZER, serving

DEMO = os.path.join(ROOT, "models/demo")
DEMO_MTP = os.path.join(ROOT, "models/demo-mtp")
QUESTIONS = ("Who are you?", "Repeat: apple river stone cloud window garden", "What is 47+38?")


def metrics(server):
    """Values of /metrics by the name of the series, summed up over labels."""
    values = {}
    with urllib.request.urlopen(server.address + "/metrics") as answer:
        for line in answer.read().decode().splitlines():
            if line.startswith("#"):
                continue
            name, value = line.rsplit(" ", 1)
            name = name.split("{")[0]
            values[name] = values.get(name, 0.0) + float(value)
    return values


def texts(server, **options):
    """The answers to all questions."""
    result = []
    for question in QUESTIONS:
        body = {"messages": [{"role": "user", "content": question}], "max_tokens": 60, **options}
        with server.post("/v1/chat/completions", body) as answer:
            result.append(json.load(answer)["choices"][0]["message"])
    return result


def speculative(**config):
    return ["--speculative-config", json.dumps(config)]


class ServeSpeculationTest(unittest.TestCase):
    def check_same_answers(self, args):
        """Answers are the same without drafts, greedy and sampled, and drafts stand."""
        options = ({"temperature": 0}, {"temperature": 1, "seed": 5})
        with serving(DEMO, "--max-model-len", "2K") as server:
            expected = [texts(server, **option) for option in options]
        with serving(DEMO, "--max-model-len", "2K", *args) as server:
            self.assertEqual([texts(server, **option) for option in options], expected)
            counts = metrics(server)
        self.assertGreater(counts["vllm:spec_decode_num_accepted_tokens_total"], 0)
        self.assertGreaterEqual(counts["vllm:spec_decode_num_draft_tokens_total"],
                                counts["vllm:spec_decode_num_accepted_tokens_total"])

    def test_the_checkpoints_own_drafter(self):
        self.check_same_answers(speculative(method="dspark", adaptive=False))

    def test_a_drafter_from_a_folder_of_its_own(self):
        self.check_same_answers(speculative(method="mtp", model=DEMO_MTP, adaptive=False))

    def test_a_request_may_do_without(self):
        with serving(DEMO, "--max-model-len", "2K", *speculative(method="auto", adaptive=False)) as server:
            texts(server, temperature=0, speculative="off")
            self.assertEqual(metrics(server)["vllm:spec_decode_num_draft_tokens_total"], 0)
            texts(server, temperature=0, speculative=1)
            self.assertGreater(metrics(server)["vllm:spec_decode_num_draft_tokens_total"], 0)

    def test_random_weights_have_a_random_drafter(self):
        with open(os.path.join(TINY_MODEL, "config.json"), encoding="utf-8") as file:
            config = json.load(file)
        layers = config["num_hidden_layers"]
        config.update(dspark_block_size=4, dspark_noise_token_id=3, dspark_markov_rank=8,
                      dspark_target_layer_ids=[layers - 2, layers - 1])
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
                json.dump(config, file)
            dummy = [folder, "--load-format", "dummy", "--tokenizer", TINY_TOKENIZER, "--max-model-len", "2K"]
            answers = []
            for args in ([], speculative(method="dspark", num_speculative_tokens=3, adaptive=False)):
                with serving(*dummy, *args) as server:
                    body = {"prompt": [5, 6, 7], "max_tokens": 30, "temperature": 0, "ignore_eos": True,
                            "return_token_ids": True}
                    with server.post("/v1/completions", body) as answer:
                        answers.append(json.load(answer)["choices"][0]["token_ids"])
                    if args:
                        self.assertGreater(metrics(server)["vllm:spec_decode_num_draft_tokens_total"], 30)
        self.assertEqual(answers[0], answers[1])


if __name__ == "__main__":
    unittest.main()
