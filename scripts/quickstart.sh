#!/usr/bin/env bash
# From a fresh clone to answers: installs what is missing, builds, serves a model, asks it something in English, in
# Chinese and with a tool, and stops the server again.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  cat <<'END'
usage: scripts/quickstart.sh [--keep] [--model FOLDER] [--port N] [--binary PATH]

  --keep          leave the server running and print a line to talk to it
  --model FOLDER  serve this checkpoint (default: models/demo)
  --port N        listen there (default: 8000)
  --binary PATH   use this program instead of building one
END
}

keep=false model=models/demo port=8000 binary=""
while [ $# -gt 0 ]; do
  case $1 in
    --keep) keep=true ;;
    --model | --port | --binary)
      [ $# -ge 2 ] || { echo "quickstart.sh: $1 needs a value" >&2; exit 2; }
      declare "${1#--}=$2"
      shift
      ;;
    -h | --help) usage; exit 0 ;;
    *) echo "quickstart.sh: unknown argument $1" >&2; usage >&2; exit 2 ;;
  esac
  shift
done

log=$(mktemp -t fulgur-quickstart.XXXXXX.log)
url=http://127.0.0.1:$port
server=""

say() { printf '\n== %s\n' "$*"; }

stop_server() {
  [ -n "$server" ] || return 0
  kill "$server" 2>/dev/null || true
  wait "$server" 2>/dev/null || true
  server=""
}
trap stop_server EXIT

build() {
  say "Debian packages"
  ./scripts/setup.sh
  say "Build (a few minutes the first time)"
  cmake --preset release >/dev/null
  cmake --build --preset release --target fulgur
  binary=build/release/fulgur
}

start_server() {
  say "Serve $model at $url"
  "$binary" serve "$model" --port "$port" --served-model-name demo --max-model-len auto --max-num-seqs 8 \
    --reasoning-parser deepseek_v4 --tool-call-parser deepseek_v4 --enable-auto-tool-choice >"$log" 2>&1 &
  server=$!
  until curl -sf "$url/health"; do
    if ! kill -0 "$server" 2>/dev/null; then
      echo "The server did not start:" >&2
      cat "$log" >&2
      exit 1
    fi
    sleep 0.2
  done
  cat "$log"
}

# Prints the JSON of the answer to the messages and further fields given as JSON.
complete() {
  curl -sS "$url/v1/chat/completions" -H 'Content-Type: application/json' \
    -d "{\"messages\": $1, \"temperature\": 0, \"max_tokens\": 256${2:+, $2}}"
}

# show ROLE TEXT ANSWER: what was said, and the answer to it: reasoning, text and tool calls.
show() {
  python3 - "$@" <<'END'
import json, sys
role, text, answer = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
if "choices" not in answer:
    sys.exit(f"The server answered: {sys.argv[3]}")
message = answer["choices"][0]["message"]
print(f"  {role:<11}{text}")
if message.get("reasoning"):
    print(f"  (thinks)   {message['reasoning']}")
if message.get("content"):
    print(f"  assistant  {message['content']}")
for call in message.get("tool_calls") or []:
    print(f"  calls      {call['function']['name']}({call['function']['arguments']})")
END
}

ask() { show user "$1" "$(complete "[{\"role\": \"user\", \"content\": \"$1\"}]")"; }

# The model calls a tool, gets its result and answers with it.
ask_with_tool() {
  local question="What is the weather in Paris?" result='{"city": "Paris", "temp": 21, "sky": "sunny"}'
  local tools='"tools": [{"type": "function", "function": {"name": "get_weather",
    "description": "Current weather of a city", "parameters": {"type": "object",
    "properties": {"city": {"type": "string"}}, "required": ["city"]}}}]'
  local answer messages
  answer=$(complete "[{\"role\": \"user\", \"content\": \"$question\"}]" "$tools")
  show user "$question" "$answer"
  messages=$(python3 - "$question" "$answer" "$result" <<'END'
import json, sys
question, answer, result = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3]
message = answer["choices"][0]["message"]
messages = [{"role": "user", "content": question}, message]
messages += [{"role": "tool", "tool_call_id": call["id"], "content": result} for call in message.get("tool_calls") or []]
print(json.dumps(messages) if len(messages) > 2 else "")
END
)
  [ -n "$messages" ] || return 0
  show tool "$result" "$(complete "$messages" "$tools")"
}

[ -n "$binary" ] || build
start_server
say "In English"
ask "Who are you?"
ask "What is 17 + 25?"
say "In Chinese"
ask "你是谁？"
say "With a tool"
ask_with_tool

if $keep; then
  say "The server goes on (process $server, log $log). Talk to it:"
  cat <<END
  curl $url/v1/chat/completions -H 'Content-Type: application/json' \\
    -d '{"messages": [{"role": "user", "content": "Hello!"}]}'
  $binary chat --url $url
  kill $server
END
  server=""
else
  stop_server
  rm -f "$log"
  say "Stopped. --keep leaves the server running."
fi
