// SPDX-License-Identifier: Apache-2.0
#include "proxy/cli/link_lines.h"

#include <string_view>

#include "proxy/cli/answer_values.h"
#include "proxy/cli/screen_texts.h"
#include "proxy/cli/table.h"

namespace longhaul::cli {

namespace json = boost::json;

namespace {

// The origin of the rate. A daemon of an earlier version does not report it.
std::string rate_words(const json::value& udp) {
  const auto* rate = udp.as_object().if_contains("rate");
  if (!rate) return "";
  const auto law = text(rate->at("law"));
  std::string said = law == "configured"      ? " (configured rate)"
                     : law == "limited" ? " (below the configured rate: the line carries less)"
                                        : " (measured rate)";
  if (rate->at("competes").as_bool()) said += ", other traffic fills the line's queue";
  if (rate->at("policed").as_bool()) said += ", a policer drops packets above its rate";
  return said;
}

}  // namespace

std::string percent(std::uint64_t part, std::uint64_t whole) {
  if (whole == 0) return "-";
  const std::uint64_t thousandths =
      static_cast<std::uint64_t>(1000.0 * static_cast<double>(part) / static_cast<double>(whole) + 0.5);
  return std::to_string(thousandths / 10) + "." + std::to_string(thousandths % 10) + " %";
}

std::string stages(const json::value& bytes) {
  const auto plain = number(bytes.at("plain"));
  if (plain == 0) return "nothing";
  return bytes_text(plain) + ", " + percent(number(bytes.at("deduped")), plain) + " after deduplication, " +
         percent(number(bytes.at("encoded")), plain) + " after compression";
}

std::string udp_line(const json::value& link) {
  const auto& udp = link.at("udp");
  const auto state = text(udp.at("state"));
  if (state == "probing")
    return udp.at("remote_address").is_null() ? "no UDP packet received yet" : "probing UDP";
  if (state == "failed")
    return "the peer does not answer over UDP; using TCP, and UDP is probed again within a minute. If this "
           "persists, "
           "check that firewalls allow UDP on the link's port";
  std::string said = link.at("carrier") == "udp" ? "using UDP" : "UDP works but is not used";
  if (!udp.at("datagram_bytes").is_null())
    said += ", datagrams of " + text(udp.at("datagram_bytes")) + " bytes";
  if (!udp.at("pacing_rate_bits").is_null())
    said += ", paced at " + rate_text(number(udp.at("pacing_rate_bits"))) + rate_words(udp);
  if (const auto* bursts = udp.as_object().if_contains("drops_bursts"); bursts && bursts->as_bool())
    said += ", packets sent one by one because the path drops bursts";
  const auto sent = number(udp.at("packets_sent")), lost = number(udp.at("packets_lost"));
  said += ", " + std::to_string(lost) + " of " + std::to_string(sent) + " packets lost";
  const auto repairs = number(udp.at("repairs_sent")), recovered = number(udp.at("symbols_recovered"));
  if (repairs + recovered > 0)
    said += ", " + std::to_string(repairs) + " repair packets sent, " + std::to_string(recovered) +
            " lost packets recovered";
  const auto fallbacks = number(udp.at("fallbacks"));
  if (fallbacks > 0)
    said += ", fell back to TCP " + std::to_string(fallbacks) + (fallbacks == 1 ? " time" : " times");
  return said;
}

std::string path_line(const json::value& path) {
  const auto role = text(path.at("role"));
  std::string said = "path " + text(path.at("name"));
  if (role == "none")
    return said + (path.at("state") == "probing" ? ": does not work, being probed"
                                                 : ": does not work, will be probed again within a minute");
  said += role == "carries" ? ": carries the link (" + text(path.at("reason")) + ")"
          : role == "helps" ? ": carries part of the bulk transfers"
                            : ": works, on standby";
  if (!path.at("rtt_ms").is_null()) said += ", round trip " + rtt(path.at("rtt_ms"));
  if (!path.at("pacing_rate_bits").is_null())
    said += ", paced at " + rate_text(number(path.at("pacing_rate_bits")));
  return said + ", cost " + text(path.at("cost")) + ", " + bytes_text(number(path.at("bytes_sent"))) +
         " sent, " + text(path.at("packets_lost")) + " of " + text(path.at("packets_sent")) + " packets lost";
}

std::string unlike_modules_line(const json::value& link) {
  const auto* modules = link.as_object().if_contains("unlike_modules");  // an earlier version does not report it
  if (!modules || modules->as_array().empty()) return "";
  std::string said = "the peer runs another version of longhaul. Its flows use the link, but these modules do not serve them:";
  for (const auto& module : modules->as_array())
    said += (&module == &modules->as_array().front() ? " " : ", ") + text(module.at("module")) + " (" +
            text(module.at("version")) + " here, " +
            (module.at("peer_version").is_null() ? "none" : text(module.at("peer_version"))) + " there)";
  return said;
}

std::string reduction_line(const json::value& reduction) {
  const auto& out = reduction.at("out");
  const auto& in = reduction.at("in");
  std::string said = "reduction, sent: " + stages(out.at("bytes")) + "; received: " + stages(in.at("bytes"));
  if (!reduction.at("active").as_bool()) return said + "; the peer does not reduce data at the moment";
  said += "; dictionaries " + bytes_text(number(out.at("dictionary_filled_bytes"))) + " of " +
          bytes_text(number(out.at("dictionary_bytes"))) + " out, " +
          bytes_text(number(in.at("dictionary_filled_bytes"))) + " of " +
          bytes_text(number(in.at("dictionary_bytes"))) + " in";
  const auto note = [&](std::uint64_t count, std::string_view what) {
    if (count > 0) said += ", " + std::to_string(count) + std::string(what);
  };
  if (number(out.at("compressed_bytes")) > 0)
    said += "; zstd level " + text(out.at("zstd_level")) +
            (number(out.at("zstd_relief")) > 0 ? ", lowered because the CPU is busy" : "");
  if (number(out.at("opened_bytes")) > 0)
    said += ", " + bytes_text(number(out.at("opened_bytes"))) + " of deflate data unpacked and recompressed";
  note(number(out.at("incompressible_blocks")), " incompressible blocks");
  note(number(out.at("horizon_stalls")), " repeats sent in full because the first copy was still in transit");
  note(number(out.at("needs")) + number(in.at("needs")), " blocks requested again");
  note(number(out.at("mismatches")) + number(in.at("mismatches")), " checksum mismatches");
  note(number(in.at("failed")), " flows reset");
  return said;
}

}  // namespace longhaul::cli
