// Typed look-ups in JSON objects of files that others wrote: what is missing or of another type is
// absent, not an error.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "simdjson.h"

namespace fulgur::bench {

using JsonElement = simdjson::dom::element;
using JsonObject = simdjson::dom::object;
using JsonArray = simdjson::dom::array;

std::optional<double> NumberOf(const JsonElement& element);
std::optional<int64_t> IntegerOf(const JsonElement& element);  // floats without fraction too

std::optional<JsonElement> FieldAt(const JsonObject& object, std::string_view key);
std::optional<double> NumberAt(const JsonObject& object, std::string_view key);
std::optional<int64_t> IntegerAt(const JsonObject& object, std::string_view key);
std::optional<bool> BoolAt(const JsonObject& object, std::string_view key);
std::optional<JsonObject> ObjectAt(const JsonObject& object, std::string_view key);
std::optional<JsonArray> ArrayAt(const JsonObject& object, std::string_view key);
std::string TextAt(const JsonObject& object, std::string_view key);  // empty if absent

// The elements of a list that are objects; none if there is no such list.
std::vector<JsonObject> ObjectsAt(const JsonObject& object, std::string_view key);

// A list whose every element is a number; absent if there is none or one element is not.
std::optional<std::vector<double>> NumbersAt(const JsonObject& object, std::string_view key);
std::vector<std::string> TextsAt(const JsonObject& object, std::string_view key);

// The texts of an object by key; other values are left out. Empty if there is no such object.
std::map<std::string, std::string> TextMapAt(const JsonObject& object, std::string_view key);

}  // namespace fulgur::bench
