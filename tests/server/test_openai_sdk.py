"""The official Python client against the real process."""

import json
import threading

import openai
import pytest

from conftest import metric, wait_until_idle

TOOLS = [{
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Weather of a city",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
            "required": ["city"],
        },
    },
}]


@pytest.fixture(scope="module")
def client(server):
    return openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0)


def ask(text):
    return [{"role": "user", "content": text}]


def test_models(client):
    assert [model.id for model in client.models.list()] == ["dsv4"]
    assert client.models.retrieve("dsv4").id == "dsv4"


def test_chat(client):
    answer = client.chat.completions.create(model="dsv4", messages=ask("Hi"))
    assert answer.choices[0].message.content == "Hello, 你好 😀!"
    assert answer.choices[0].finish_reason == "stop"
    assert answer.choices[0].message.tool_calls is None
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens


def test_stream(client):
    stream = client.chat.completions.create(
        model="dsv4", messages=ask("Hi"), stream=True, stream_options={"include_usage": True})
    chunks = list(stream)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == "Hello, 你好 😀!"
    assert chunks[0].choices[0].delta.role == "assistant"
    assert chunks[-1].usage.completion_tokens > 0
    assert len({chunk.id for chunk in chunks}) == 1


def test_reasoning(client):
    answer = client.chat.completions.create(model="dsv4", messages=ask("think"))
    message = answer.choices[0].message
    assert message.content == "It is 4."
    assert message.reasoning == message.reasoning_content == "First this, then that."
    assert answer.usage.completion_tokens_details.reasoning_tokens > 0
    stream = client.chat.completions.create(model="dsv4", messages=ask("think"), stream=True)
    deltas = [chunk.choices[0].delta for chunk in stream]
    reasoning = "".join(getattr(delta, "reasoning_content", None) or "" for delta in deltas)
    assert reasoning == "First this, then that."


def test_tools_round_trip(client):
    messages = ask("weather in Lyon")
    answer = client.chat.completions.create(model="dsv4", messages=messages, tools=TOOLS)
    assert answer.choices[0].finish_reason == "tool_calls"
    call = answer.choices[0].message.tool_calls[0]
    assert call.function.name == "get_weather"
    assert json.loads(call.function.arguments) == {"city": "Lyon", "days": 3}
    messages += [answer.choices[0].message,
                 {"role": "tool", "tool_call_id": call.id, "content": "sunny"},
                 {"role": "user", "content": "Thanks"}]
    answer = client.chat.completions.create(model="dsv4", messages=messages, tools=TOOLS)
    assert answer.choices[0].message.content == "Hello, 你好 😀!"


def test_tools_streamed(client):
    name, arguments = None, ""
    with client.chat.completions.stream(
            model="dsv4", messages=ask("weather"), tools=TOOLS) as stream:
        for event in stream:
            if event.type == "tool_calls.function.arguments.delta":
                name, arguments = event.name, event.arguments
        final = stream.get_final_completion()
    assert name == "get_weather"
    assert json.loads(arguments) == {"city": "Lyon", "days": 3}
    assert final.choices[0].message.tool_calls[0].function.arguments == arguments


def test_forced_tool(client):
    # The script's text is not one that goes on behind an opened block, but the request is served.
    answer = client.chat.completions.create(
        model="dsv4", messages=ask("weather"), tools=TOOLS, tool_choice="required")
    assert answer.choices[0].message.tool_calls[0].function.name == "get_weather"


def test_logprobs(client):
    answer = client.chat.completions.create(
        model="dsv4", messages=ask("Hi"), logprobs=True, top_logprobs=1)
    content = answer.choices[0].logprobs.content
    assert len(content) == answer.usage.completion_tokens
    joined = b"".join(bytes(entry.bytes) for entry in content)
    assert "Hello, 你好 😀!".encode() in joined


def test_n(client):
    answer = client.chat.completions.create(model="dsv4", messages=ask("Hi"), n=3)
    assert [choice.index for choice in answer.choices] == [0, 1, 2]
    assert {choice.message.content for choice in answer.choices} == {"Hello, 你好 😀!"}


def test_cancel(client, server):
    before = metric(server, "vllm:request_success_total")
    stream = client.chat.completions.create(model="dsv4", messages=ask("forever"), stream=True)
    for count, _ in enumerate(stream):
        if count == 5:
            break
    stream.close()
    wait_until_idle(server)
    assert metric(server, "vllm:request_success_total") == before + 1


def test_time_out_aborts(client, server):
    with pytest.raises(openai.APITimeoutError):
        client.with_options(timeout=0.5).chat.completions.create(
            model="dsv4", messages=ask("forever"))
    wait_until_idle(server)


def test_errors(client):
    with pytest.raises(openai.NotFoundError) as error:
        client.chat.completions.create(model="nope", messages=ask("Hi"))
    assert error.value.param == "model" and "dsv4" in str(error.value)
    with pytest.raises(openai.BadRequestError) as error:
        client.chat.completions.create(model="dsv4", messages=ask("Hi"), temperature=-1)
    assert error.value.param == "temperature"
    with pytest.raises(openai.InternalServerError):
        client.chat.completions.create(model="dsv4", messages=ask("fail"))
    with pytest.raises(openai.APIConnectionError):
        client.chat.completions.create(model="dsv4", messages=ask("break"))
    with pytest.raises(openai.APIError):
        list(client.chat.completions.create(model="dsv4", messages=ask("fail"), stream=True))


def test_length(client):
    answer = client.chat.completions.create(model="dsv4", messages=ask("cut"))
    assert answer.choices[0].finish_reason == "length"
    answer = client.chat.completions.create(model="dsv4", messages=ask("Hi"), max_tokens=2)
    assert answer.choices[0].finish_reason == "length"
    assert answer.usage.completion_tokens == 2


def test_stop_strings(client):
    answer = client.chat.completions.create(model="dsv4", messages=ask("Hi"), stop=["好"])
    assert answer.choices[0].message.content == "Hello, 你"
    assert answer.choices[0].stop_reason == "好"


def test_completions(client):
    answer = client.completions.create(model="dsv4", prompt="Hi", max_tokens=100, logprobs=1)
    assert answer.choices[0].text == "</think>Hello, 你好 😀!"
    assert len(answer.choices[0].logprobs.tokens) == answer.usage.completion_tokens
    stream = client.completions.create(model="dsv4", prompt="Hi", max_tokens=100, stream=True)
    assert "".join(c.choices[0].text for c in stream) == "</think>Hello, 你好 😀!"


def test_many_at_once(client):
    answers = [None] * 64

    def run(i):
        stream = client.chat.completions.create(model="dsv4", messages=ask("slow"), stream=True)
        answers[i] = "".join(chunk.choices[0].delta.content or "" for chunk in stream)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(answers) == {"tick " * 20}
