// SPDX-License-Identifier: Apache-2.0
#include "proxy/config/exports.h"

#include <array>

#include "proxy/config/values.h"

namespace longhaul::config {

Export read_export(const Section& top, const std::filesystem::path& folder) {
  static constexpr std::array<std::string_view, 6> kKeys{"ipfix", "ipfix_enterprise", "ipfix_active_timeout",
                                                         "otlp",  "otlp_interval",    "otlp_ca"};
  const auto section = top.table("export", kKeys);
  Export exports;
  if (!section) return exports;
  if (const auto typed = section->text("ipfix", "collector.example:4739"))
    exports.ipfix = host_port(*section, "ipfix", *typed, HostKind::address_or_name);
  if (const auto number = section->integer("ipfix_enterprise", 1, 0xffff'ffff))
    exports.ipfix_enterprise = static_cast<std::uint32_t>(*number);
  if (const auto seconds = section->integer("ipfix_active_timeout", 1, 86'400))
    exports.ipfix_active_timeout = std::chrono::seconds(*seconds);
  for (const std::string_view key : {"ipfix_enterprise", "ipfix_active_timeout"})
    if (section->has(key) && !exports.ipfix)
      section->fail(section->line(), key, "has no effect without ipfix, the address of the collector.");
  if (const auto typed = section->text("otlp", "http://collector.example:4318")) {
    auto base = parse_http_base(typed->value);
    if (!base) section->fail(typed->line, "otlp", "= \"" + typed->value + "\" " + base.error().message + ".");
    exports.otlp = *std::move(base);
  }
  if (const auto seconds = section->integer("otlp_interval", 1, 86'400))
    exports.otlp_interval = std::chrono::seconds(*seconds);
  if (section->has("otlp_interval") && !exports.otlp)
    section->fail(section->line(), "otlp_interval",
                  "has no effect without otlp, the address of the collector.");
  if (const auto file = section->text("otlp_ca", "ca.pem")) {
    if (!exports.otlp || !exports.otlp->tls)
      section->fail(file->line, "otlp_ca", "has no effect without otlp = \"https://…\".");
    exports.otlp_ca = folder / file->value;  // an absolute path stays as it is
  }
  return exports;
}

}  // namespace longhaul::config
