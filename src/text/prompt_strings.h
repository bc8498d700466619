// The fixed texts of the DeepSeek-V4 prompt format. The model was trained on these very bytes
// (encoding/encoding_dsv4.py in the checkpoint repositories, MIT): do not edit or re-wrap them.
#pragma once

#include <string_view>

namespace fulgur::text {

inline constexpr std::string_view kBos = "<｜begin▁of▁sentence｜>";
inline constexpr std::string_view kEos = "<｜end▁of▁sentence｜>";
inline constexpr std::string_view kUser = "<｜User｜>";
inline constexpr std::string_view kAssistant = "<｜Assistant｜>";
inline constexpr std::string_view kThinkOpen = "<think>";
inline constexpr std::string_view kThinkClose = "</think>";
inline constexpr std::string_view kLatestReminder = "<｜latest_reminder｜>";
inline constexpr std::string_view kFimBegin = "<｜fim▁begin｜>";
inline constexpr std::string_view kFimHole = "<｜fim▁hole｜>";
inline constexpr std::string_view kFimEnd = "<｜fim▁end｜>";

inline constexpr std::string_view kToolResultOpen = "<tool_result>";
inline constexpr std::string_view kToolResultClose = "</tool_result>";

inline constexpr std::string_view kCallsOpen = "<｜DSML｜tool_calls>";
inline constexpr std::string_view kCallsClose = "</｜DSML｜tool_calls>";
inline constexpr std::string_view kInvokeOpen = "<｜DSML｜invoke name=\"";  // NAME ">
inline constexpr std::string_view kInvokeClose = "</｜DSML｜invoke>";
inline constexpr std::string_view kParameterOpen = "<｜DSML｜parameter name=\"";  // KEY
inline constexpr std::string_view kParameterString = "\" string=\"true\">";       // VALUE
inline constexpr std::string_view kParameterJson = "\" string=\"false\">";        // VALUE
inline constexpr std::string_view kParameterClose = "</｜DSML｜parameter>";

// Around the tool schemas, one a line.
inline constexpr std::string_view kToolsBefore =
    "## Tools\n"
    "\n"
    "You have access to a set of tools to help answer the user's question. You can "
    "invoke tools by writing a \"<｜DSML｜tool_calls>\" block like the following:\n"
    "\n"
    "<｜DSML｜tool_calls>\n"
    "<｜DSML｜invoke name=\"$TOOL_NAME\">\n"
    "<｜DSML｜parameter name=\"$PARAMETER_NAME\" "
    "string=\"true|false\">$PARAMETER_VALUE</｜DSML｜parameter>\n"
    "...\n"
    "</｜DSML｜invoke>\n"
    "<｜DSML｜invoke name=\"$TOOL_NAME2\">\n"
    "...\n"
    "</｜DSML｜invoke>\n"
    "</｜DSML｜tool_calls>\n"
    "\n"
    "String parameters should be specified as is and set `string=\"true\"`. For all "
    "other types (numbers, booleans, arrays, objects), pass the value in JSON format and "
    "set `string=\"false\"`.\n"
    "\n"
    "If thinking_mode is enabled (triggered by <think>), you MUST output your complete "
    "reasoning inside <think>...</think> BEFORE any tool calls or final response.\n"
    "\n"
    "Otherwise, output directly after </think> with tool calls or final response.\n"
    "\n"
    "### Available Tool Schemas\n"
    "\n";
inline constexpr std::string_view kToolsAfter =
    "\n"
    "\n"
    "You MUST strictly follow the above defined tool name and parameter schemas to "
    "invoke tool calls.\n";

// Before the JSON of a response format.
inline constexpr std::string_view kResponseFormat =
    "## Response Format:\n"
    "\n"
    "You MUST strictly adhere to the following schema to reply:\n";

// The preview checkpoints say this for effort "max", the official ones for "high".
inline constexpr std::string_view kEffortAbsolute =
    "Reasoning Effort: Absolute maximum with no shortcuts permitted.\n"
    "You MUST be very thorough in your thinking and comprehensively decompose the "
    "problem to resolve the root cause, rigorously stress-testing your logic against all "
    "potential paths, edge cases, and adversarial scenarios.\n"
    "Explicitly write out your entire deliberation process, documenting every "
    "intermediate step, considered alternative, and rejected hypothesis to ensure "
    "absolutely no assumption is left unchecked.\n"
    "\n";
// The official checkpoints' effort "max".
inline constexpr std::string_view kEffortBeyond =
    "Reasoning Effort: Beyond maximum — exhaustive, relentless, and uncompromising.\n"
    "You MUST reason with the utmost depth and rigor, leaving absolutely nothing to "
    "chance: exhaustively decompose the problem into its most fundamental components, "
    "trace every causal chain to its root, and resolve the underlying cause rather than "
    "any surface symptom.\n"
    "Do not stop reasoning until you have independently verified the solution from "
    "multiple angles and are certain that no assumption remains unchecked and no error "
    "remains undiscovered.\n"
    "\n";

}  // namespace fulgur::text
