// SPDX-License-Identifier: Apache-2.0
// Sizes, buffers and windows as the source gives them.
#include "tools/txn/presets.h"

#include <string>

#include "tools/measuring/trouble.h"

namespace longhaul::txn {
namespace {

using enum Script;
using enum Protocol;

// TCP with the source's send buffer and window; UDP has its own as standard.
Workload as_measured(Script script, Protocol protocol) {
  Workload workload = standard(script, protocol);
  if (protocol == tcp) workload.window_bytes = 8'760;
  return workload;
}

template <class Change>
Row changed(Script script, Protocol protocol, Change change, unsigned pairs = 1) {
  Row row{as_measured(script, protocol), pairs};
  change(row.workload);
  return row;
}

Row plain(Script script, Protocol protocol, unsigned pairs = 1) {
  return {as_measured(script, protocol), pairs};
}

std::vector<Preset> make_presets() {
  const auto file = [](std::uint32_t bytes) { return [bytes](Workload& w) { w.file_bytes = bytes; }; };
  const auto buffer = [](std::uint32_t bytes) { return [bytes](Workload& w) { w.send_buffer = bytes; }; };
  const auto window = [](std::uint32_t bytes) { return [bytes](Workload& w) { w.window_bytes = bytes; }; };
  const auto calls = [](Calls kind) { return [kind](Workload& w) { w.calls = kind; }; };
  const auto fast = [](Workload& w) {
    w.send_buffer = 32'543;
    w.window_bytes = 130'172;
  };
  return {
      {"tcp-udp",
       "each script over TCP and over UDP",
       {plain(eft_short, tcp), plain(eft_short, udp), plain(eft_long, tcp), plain(eft_long, udp),
        plain(filetransf_long, tcp), plain(filetransf_long, udp)}},
      {"file-size",
       "files of 100,000 and 1,460,000 bytes",
       {changed(filetransf_long, tcp, file(100'000)), changed(filetransf_long, tcp, file(1'460'000)),
        changed(filetransf_long, udp, file(100'000)), changed(filetransf_long, udp, file(1'460'000))}},
      {"send-buffer",
       "send calls with 1,460 bytes, which fill a frame, and with 1,461 bytes, which do not fit one",
       {changed(filetransf_long, tcp, buffer(1'460)), changed(filetransf_long, tcp, buffer(1'461))}},
      {"window",
       "TCP windows of 8,760 and 65,535 bytes, UDP windows of 17,726 and 130,172 bytes",
       {changed(filetransf_long, tcp, window(8'760)), changed(filetransf_long, tcp, window(65'535)),
        plain(filetransf_long, udp), changed(filetransf_long, udp, fast)}},
      {"calls",
       "blocking calls and non-blocking ones",
       {changed(filetransf_long, tcp, calls(Calls::blocking)),
        changed(filetransf_long, tcp, calls(Calls::non_blocking)),
        changed(eft_long, tcp, calls(Calls::blocking)), changed(eft_long, tcp, calls(Calls::non_blocking))}},
      {"pairs",
       "one pair of agents and ten at once",
       {plain(eft_short, tcp, 1), plain(eft_short, tcp, 10), plain(filetransf_long, tcp, 1),
        plain(filetransf_long, tcp, 10), plain(filetransf_long, udp, 1), plain(filetransf_long, udp, 10)}},
  };
}

}  // namespace

const std::vector<Preset>& presets() {
  static const std::vector<Preset> all = make_presets();
  return all;
}

const Preset& preset_of(std::string_view name) {
  std::string names;
  for (const Preset& preset : presets()) {
    if (preset.name == name) return preset;
    names += (names.empty() ? "" : ", ") + std::string(preset.name);
  }
  throw measuring::Trouble("there is no preset '" + std::string(name) + "'; known presets: " + names);
}

}  // namespace longhaul::txn
