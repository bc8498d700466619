#include "server/core.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <xxhash.h>

#include "absl/time/clock.h"

namespace fulgur::server {
namespace {

std::optional<std::string> MakeFingerprint(const ServerOptions& options, const ModelInfo& model) {
  std::string settings = fmt::format("{}|{}|{}|{}", model.version, model.path,
                                     options.chat.tool_parser, options.chat.reasoning_parser);
  uint64_t hash = XXH3_64bits(settings.data(), settings.size());
  std::string digits = fmt::format("{:08x}", static_cast<uint32_t>(hash));
  switch (options.fingerprint_mode) {
    case FingerprintMode::kFull:
      return fmt::format("fulgur-{}-{}", model.version, digits);
    case FingerprintMode::kHash:
      return digits;
    case FingerprintMode::kCustom:
      return options.fingerprint_value;
    case FingerprintMode::kNone:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

Core::Core(ServerOptions options, engine::Engine& engine, const text::Tokenizer* tokenizer,
           ModelInfo model)
    : options_(std::move(options)),
      model_(std::move(model)),
      engine_(engine),
      formats_(tokenizer == nullptr ? nullptr
                                    : std::make_unique<grammar::FormatCompiler>(*tokenizer)),
      serving_{
          &options_,         tokenizer, formats_.get(), model_.eos_token_ids, engine.MaxModelLen(),
          engine.VocabSize()},
      fingerprint_(MakeFingerprint(options_, model_)),
      start_seconds_(absl::ToUnixSeconds(absl::Now())),
      metrics_(options_.served_model_names.front(), engine.MaxModelLen(), options_.cache_config),
      workers_(options_.num_worker_threads) {}

void Core::Attach(HttpServer* http) {
  http_ = http;
  dispatcher_ = std::make_unique<Dispatcher>(
      engine_, [http](std::function<void()> task) { http->Post(std::move(task)); },
      [this](const engine::RequestRecord& record) { metrics_.OnRecord(record); });
}

absl::Status Core::Health() const {
  absl::Status status = engine_.Health();
  if (!status.ok()) return status;
  if (hung_) {
    return absl::UnavailableError(
        fmt::format("The engine has work but has not finished a step for {}.",
                    absl::FormatDuration(options_.hang_timeout)));
  }
  return absl::OkStatus();
}

void Core::Watch(absl::Time now) {
  engine::EngineStats stats = engine_.Stats();
  bool idle = stats.num_running + stats.num_waiting == 0;
  if (idle || stats.num_steps != last_steps_) {
    last_progress_ = now;
    last_steps_ = stats.num_steps;
  }
  bool hung = now - last_progress_ > options_.hang_timeout;
  if (hung && !hung_)
    spdlog::error("The engine hangs: no step for {} s.",
                  absl::ToInt64Seconds(now - last_progress_));
  hung_ = hung;
  if (const auto line = speculation_log_.LineDue(stats.speculation, now)) {
    spdlog::info("{}", *line);
  }
}

void Core::FailOffloaded(const absl::Status& error) {
  auto calls = std::exchange(offloaded_, {});
  for (auto& [ticket, call] : calls) call.response->Send(ToErrorResponse(error));
}

absl::Status CheckContentType(const HttpRequest& request) {
  const std::string* type = FindHeader(request.headers, "Content-Type");
  std::string_view media = type == nullptr ? std::string_view() : *type;
  media = media.substr(0, media.find(';'));
  while (!media.empty() && media.back() == ' ') media.remove_suffix(1);
  if (EqualsIgnoreCase(media, "application/json")) return absl::OkStatus();
  return MalformedError("Unsupported Media Type: Only 'application/json' is allowed");
}

}  // namespace fulgur::server
