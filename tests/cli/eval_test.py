"""`fulgur eval` as a process, against a scripted server."""
import json
import os
import tempfile
import unittest

from fulgur_process import run, scripted

SCRIPT = [{"match": "Ann had", "text": "hm</think>answer: 1"},
          {"text": "hm</think>I think it is so.\nAnswer: A"}]


class EvalTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        cls.server = cls.enterClassContext(scripted(*SCRIPT))

    def path(self, name):
        return os.path.join(self.folder, name)

    def evaluate(self, *flags):
        return run("eval", "--url", self.server.address, *flags, timeout=60)

    def test_a_score_and_its_files(self):
        out = self.path("mc")
        answer = self.evaluate("--dataset", "selftest-mc", "--out", out)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        self.assertIn("selftest-mc: 25.00 % of 40 questions", answer.stdout)
        with open(os.path.join(out, "accuracy.json"), encoding="utf-8") as file:
            summary = json.load(file)
        self.assertEqual(summary["format"], "fulgur-accuracy/1")
        self.assertEqual((summary["n"], summary["score"], summary["tiers"]), (40, 0.25, {"1": 40}))
        with open(os.path.join(out, "items.jsonl"), encoding="utf-8") as file:
            items = [json.loads(line) for line in file]
        self.assertEqual(sum(item["correct"] for item in items), 10)
        self.assertTrue(all(item["completion_tokens"] > 0 for item in items))

        again = run("eval", "--regrade", out)
        self.assertIn("25.00 % of 40", again.stdout, again.stderr)
        compared = run("eval", "--compare", out, out)
        self.assertIn("difference +0.00 points", compared.stdout, compared.stderr)
        self.assertIn("100.0 % of the answers are byte-equal", compared.stdout)

    def test_a_limit_and_a_template(self):
        template = self.path("template.txt")
        with open(template, "w", encoding="utf-8") as file:
            file.write("Pick a letter.\n{question}\n{options}")
        answer = self.evaluate("--dataset", "selftest-mc", "--limit", "5", "--prompt-template", template)
        self.assertIn("of 5 questions", answer.stdout, answer.stderr)

    def test_several_samples_give_pass_at_k(self):
        out = self.path("samples")
        answer = self.evaluate("--dataset", "selftest-mc", "--limit", "4", "--n-samples", "4", "--temperature", "1",
                               "--out", out)
        self.assertIn("pass@4: ", answer.stdout, answer.stderr)
        with open(os.path.join(out, "accuracy.json"), encoding="utf-8") as file:
            self.assertEqual(sorted(json.load(file)["pass_at_k"]), ["1", "2", "4"])

    def test_needles(self):
        answer = self.evaluate("--dataset", "needle", "--needle-words", "50", "120", "--needle-depths", "2")
        self.assertEqual(answer.returncode, 0, answer.stderr)
        self.assertIn("needle: 0.00 % of 8 questions", answer.stdout)
        self.assertIn("    120 words, depth 100 %: 0 of 2", answer.stdout)

    def test_answers_that_are_cut_make_a_score_invalid(self):
        answer = self.evaluate("--dataset", "selftest-math", "--max-tokens", "2")
        self.assertEqual(answer.returncode, 4)
        self.assertIn("not valid: 60 of 60 answers were cut at the token limit; raise --max-tokens", answer.stdout)

    def test_a_server_that_is_not_there(self):
        answer = run("eval", "--url", "http://127.0.0.1:1", "--dataset", "selftest-mc", timeout=60)
        self.assertEqual(answer.returncode, 1)
        self.assertRegex(answer.stderr, "fulgur eval: .*refused")

    def test_mistakes(self):
        for flags, sentence in (
                (["--dataset", "gsm9k"], "there are gsm8k"),
                (["--dataset", "gsm8k"], "needs --data FILE"),
                (["--dataset", "gsm8k", "--data", self.path("absent")], "absent"),
                ([], "--dataset is missing"),
                (["--dataset", "needle", "--needle-words", "many"], "--needle-words 'many' is no number"),
                (["--dataset", "livecodebench"], "needs --data FILE"),
                (["--dataset", "selftest-mc", "--n-samples", "4"], "needs --temperature above 0"),
                (["--dataset", "selftest-mc", "--compare", "x"], "--compare needs --out"),
                (["--dataset", "selftest-mc", "--concurency", "4"], "did you mean --concurrency"),
        ):
            answer = run("eval", *flags)
            self.assertEqual(answer.returncode, 2, flags)
            self.assertIn(sentence, answer.stderr)


if __name__ == "__main__":
    unittest.main()
