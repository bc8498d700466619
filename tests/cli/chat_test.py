"""`fulgur chat` against a server that replays a script, through pipes and a terminal."""
import os
import pty
import subprocess
import time
import unittest

from fulgur_process import FULGUR, run, scripted

SCRIPT = [
    {"match": "think", "text": "let me see</think>the answer"},
    {"match": "escape", "text": "</think>red\u001b[31m text"},
    {"match": "long", "text": "</think>" + "word " * 50, "finish": "length"},
    {"match": "slow", "text": "</think>" + "tick " * 2000, "delay_ms": 20},
    {"match": "fail", "text": "</think>begin", "finish": "error"},
    {"match": "break", "text": "</think>begin", "finish": "disconnect"},
    {"text": "</think>hello"},
]


class ChatTest(unittest.TestCase):
    def test_through_pipes(self):
        with scripted(*SCRIPT) as server:
            done = run("chat", "--url", server.address, stdin="hi\n\nthink\n/reset\nlong\n/quit\nnever said\n")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, "hello\nthe answer\n" + "word " * 50 + "\n")
        self.assertEqual(done.stderr, "let me see\n(the answer reached the limit of tokens)\n")

    def test_url_with_version(self):
        with scripted(*SCRIPT) as server:
            self.assertEqual(run("chat", "--url", server.address + "/v1/", stdin="hi").stdout, "hello\n")

    def test_failures(self):
        with scripted(*SCRIPT) as server:
            for line in ("fail", "break"):
                with self.subTest(line=line):
                    done = run("chat", "--url", server.address, stdin=line + "\nhi\n")
                    self.assertEqual(done.returncode, 1)
                    self.assertEqual(done.stdout, "begin\nhello\n")
                    self.assertIn("fulgur chat: ", done.stderr)
            done = run("chat", "--url", server.address, "--model", "other", stdin="hi")
            self.assertEqual(done.returncode, 1)
            self.assertIn("the server answered 404", done.stderr)

    def test_no_server(self):
        done = run("chat", "--url", "http://127.0.0.1:9", stdin="hi")
        self.assertEqual(done.returncode, 1)
        self.assertIn("fulgur chat: http://127.0.0.1:9/v1/models: ", done.stderr)

    def test_key(self):
        with scripted(*SCRIPT, flags=["--api-key", "k"]) as server:
            self.assertIn("401", run("chat", "--url", server.address, stdin="hi").stderr)
            self.assertEqual(run("chat", "--url", server.address, "--api-key", "k", stdin="hi").stdout, "hello\n")
            environment = {**os.environ, "VLLM_API_KEY": "k"}
            self.assertEqual(run("chat", "--url", server.address, stdin="hi", env=environment).stdout, "hello\n")


class Terminal:
    """`fulgur chat` with a keyboard and a screen."""

    def __init__(self, address):
        self.keyboard, screen = pty.openpty()
        self.process = subprocess.Popen([FULGUR, "chat", "--url", address], stdin=screen, stdout=screen,
                                        stderr=screen, start_new_session=True,
                                        preexec_fn=lambda: os.close(os.open(os.ttyname(0), os.O_RDWR)))
        os.close(screen)
        self.seen = ""

    def type(self, text):
        os.write(self.keyboard, text.encode())

    def wait_for(self, text, timeout=20):
        """Reads the screen until `text` comes, and returns what came before."""
        end = time.monotonic() + timeout
        os.set_blocking(self.keyboard, False)
        while text not in self.seen:
            if time.monotonic() > end:
                raise AssertionError(f"{text!r} never came; the screen shows {self.seen!r}")
            try:
                self.seen += os.read(self.keyboard, 65536).decode(errors="replace")
            except BlockingIOError:
                time.sleep(0.02)
        before, self.seen = self.seen.split(text, 1)
        return before

    def close(self):
        code = self.process.wait(20)
        os.close(self.keyboard)
        return code


class TerminalTest(unittest.TestCase):
    def test_conversation(self):
        with scripted(*SCRIPT) as server:
            terminal = Terminal(server.address)
            terminal.wait_for("Talking to script.")
            terminal.wait_for("> ")
            terminal.type("think\n")
            self.assertIn("\033[2mlet me see\033[0m", terminal.wait_for("the answer"))
            terminal.wait_for("> ")
            terminal.type("escape\n")
            self.assertNotIn("\033", terminal.wait_for("red[31m text"))
            terminal.wait_for("> ")
            terminal.type("/reset\n")
            terminal.wait_for("(a new conversation)")
            terminal.wait_for("> ")
            terminal.type("slow\n")
            terminal.wait_for("tick tick")
            terminal.type("\x03")
            terminal.wait_for("(stopped)")
            terminal.wait_for("> ")
            terminal.type("/quit\n")
            self.assertEqual(terminal.close(), 0)


if __name__ == "__main__":
    unittest.main()
