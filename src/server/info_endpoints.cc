#include "server/info_endpoints.h"

#include <string>

#include "server/answer_json.h"
#include "server/json_writer.h"
#include "server/random_id.h"

namespace fulgur::server {
namespace {

void WritePermission(int64_t created, JsonWriter* json) {
  json->BeginObject().Field("id", "modelperm-" + RandomHex(16)).Field("object", "model_permission");
  json->Field("created", created).Field("allow_create_engine", false);
  json->Field("allow_sampling", true).Field("allow_logprobs", true);
  json->Field("allow_search_indices", false).Field("allow_view", true);
  json->Field("allow_fine_tuning", false).Field("organization", "*");
  json->NullField("group").Field("is_blocking", false).EndObject();
}

void WriteModel(Core& core, const std::string& name, JsonWriter* json) {
  json->BeginObject().Field("id", name).Field("object", "model");
  json->Field("created", core.start_seconds()).Field("owned_by", core.options().owned_by);
  json->Field("root", core.model().path).NullField("parent");
  json->Field("max_model_len", core.serving().max_model_len).Key("permission").BeginArray();
  WritePermission(core.start_seconds(), json);
  json->EndArray().EndObject();
}

}  // namespace

void ListModels(Core& core, const Call& call) {
  JsonWriter json;
  json.BeginObject().Field("object", "list").Key("data").BeginArray();
  for (const std::string& name : core.options().served_model_names) WriteModel(core, name, &json);
  json.EndArray().EndObject();
  SendJson(*call.response, json.Take());
}

void ShowModel(Core& core, const Call& call) {
  std::string name = call.request.path.substr(std::string_view("/v1/models/").size());
  absl::Status known = name.empty() ? ModelNotFoundError("/v1/models/ needs the name of a model.")
                                    : CheckModelName(core.options(), name);
  if (!known.ok()) return call.response->Send(ToErrorResponse(known));
  JsonWriter json;
  WriteModel(core, name, &json);
  SendJson(*call.response, json.Take());
}

void ShowHealth(Core& core, const Call& call) {
  absl::Status health = core.Health();
  if (health.ok()) return call.response->Send({200, {}, ""});
  call.response->Send(
      {503, {{"Content-Type", "text/plain; charset=utf-8"}}, std::string(health.message()) + "\n"});
}

void ShowVersion(Core& core, const Call& call) {
  JsonWriter json;
  json.BeginObject().Field("version", core.model().version).EndObject();
  SendJson(*call.response, json.Take());
}

void ShowLoad(Core& core, int64_t in_flight, const Call& call) {
  bool tracked = core.options().enable_server_load_tracking;
  JsonWriter json;
  json.BeginObject().Field("server_load", tracked ? in_flight : 0);
  if (!tracked) {
    json.Field("message", "The load is not tracked: start with --enable-server-load-tracking.");
  }
  json.EndObject();
  SendJson(*call.response, json.Take());
}

void ShowMetrics(Core& core, const Call& call) {
  call.response->Send({200,
                       {{"Content-Type", "text/plain; version=0.0.4; charset=utf-8"}},
                       core.metrics().Expose(core.engine().Stats())});
}

}  // namespace fulgur::server
