// SPDX-License-Identifier: Apache-2.0
#include "proxy/config/daemon_tables.h"

#include <array>

#include "proxy/config/units.h"
#include "proxy/config/values.h"

namespace longhaul::config {

Limits read_limits(const Section& top) {
  static constexpr std::array<std::string_view, 5> kKeys{"flows", "flows_per_source", "new_flows_per_source",
                                                         "handshakes", "memory"};
  const auto section = top.table("limits", kKeys);
  Limits limits;
  if (!section) return limits;
  if (const auto flows = section->integer("flows", 1, 1'000'000))
    limits.flows = static_cast<std::uint32_t>(*flows);
  if (const auto flows = section->integer("flows_per_source", 1, 1'000'000)) {
    if (*flows > limits.flows)
      section->fail(section->line(), "flows_per_source",
                    "= " + std::to_string(*flows) + " is more than flows, which is " +
                        std::to_string(limits.flows) + ": one client could use them all.");
    limits.flows_per_source = static_cast<std::uint32_t>(*flows);
  }
  if (const auto flows = section->integer("new_flows_per_source", 1, 1'000'000))
    limits.new_flows_per_source = static_cast<std::uint32_t>(*flows);
  if (const auto handshakes = section->integer("handshakes", 1, 10'000))
    limits.handshakes = static_cast<std::uint32_t>(*handshakes);
  if (const auto typed = section->text("memory", "2GiB")) {
    const auto bytes = parse_size(typed->value);
    if (!bytes || *bytes < (16ull << 20) || *bytes > (1ull << 40))
      section->fail(typed->line, "memory",
                    "cannot be \"" + typed->value +
                        "\"; it must be a size from \"16MiB\" to \"1TiB\", such as \"2GiB\"." +
                        meant_instead(typed->value));
    limits.memory_bytes = *bytes;
  }
  return limits;
}

Process read_process(const Section& top) {
  static constexpr std::array<std::string_view, 4> kKeys{"user", "sandbox", "unknown_calls", "writable"};
  const auto section = top.table("process", kKeys);
  Process process;
  if (!section) return process;
  if (const auto user = section->text("user", "longhaul")) {
    if (user->value.empty() || user->value.size() > 32)
      section->fail(user->line, "user", "must be the name of a user on this host, such as \"longhaul\".");
    process.user = user->value;
  }
  process.sandbox = section->boolean("sandbox").value_or(process.sandbox);
  process.kills_unknown_calls =
      section->choice<bool>("unknown_calls", {{"fail", false}, {"kill", true}}).value_or(false);
  if (section->has("unknown_calls") && !process.sandbox)
    section->fail(section->line(), "unknown_calls", "has no effect with sandbox = false.");
  if (!section->has("writable")) return process;
  if (!process.sandbox) section->fail(section->line(), "writable", "has no effect with sandbox = false.");
  for (const Text& path : section->required_texts("writable", "/var/lib/softhsm/tokens")) {
    if (!std::filesystem::path(path.value).is_absolute() || std::filesystem::path(path.value) == "/")
      section->fail(path.line, "writable",
                    "has \"" + path.value +
                        "\", which must be the absolute path of a file or of a directory other than \"/\".");
    process.writable.emplace_back(path.value);
  }
  return process;
}

Log read_log(const Section& top) {
  static constexpr std::array<std::string_view, 3> kKeys{"level", "json", "syslog"};
  const auto section = top.table("log", kKeys);
  Log log;
  if (!section) return log;
  using Level = std::string_view;
  log.level = section
                  ->choice<Level>("level", {{"info", "info"},
                                            {"error", "error"},
                                            {"warn", "warn"},
                                            {"debug", "debug"},
                                            {"trace", "trace"}})
                  .value_or("info");
  log.json = section->boolean("json").value_or(false);
  if (const auto typed = section->scalar("syslog"); typed && typed->value != "false") {
    auto syslog = parse_syslog(typed->value);
    if (!syslog)
      section->fail(typed->line, "syslog", "= \"" + typed->value + "\" " + syslog.error().message + ".");
    log.syslog = *std::move(syslog);
  }
  return log;
}

}  // namespace longhaul::config
