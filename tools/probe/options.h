// SPDX-License-Identifier: Apache-2.0
// What becomes of a SYN's options on the way: as sent, as each router quotes them (the idea of tracebox), as
// they arrived at an agent, and what the answer has. Comparing is pure; probe_options sends.
#pragma once
#include <boost/json.hpp>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "tools/probe/host.h"
#include "tools/probe/prober.h"

namespace longhaul::probe {

// One place where the options of our SYN were seen.
struct Station {
  unsigned hop = 0;     // 0: this host
  std::string address;  // "here", an address
  bool is_agent = false;
  TcpOptions options;
  bool cut = false;  // quoted so short that what is missing says nothing
};

struct Change {
  std::string option;   // "window scale"
  std::string before;   // value there; "7"
  std::string after;    // "gone"
  std::string between;  // a phrase: "between 10.1.1.1 (hop 1), where it was still there, and …"
};

struct OptionsReport {
  std::string host;
  std::string address;
  std::uint16_t port = 0;
  std::vector<Station> stations;
  bool answered = false;
  bool refused = false;                      // by a reset: nothing listens there, so nothing is offered
  std::optional<TcpOptions> answer;          // of the SYN-ACK
  std::optional<HostSettings> far_settings;  // from the agent
  std::optional<std::uint16_t> seen_at;      // the agent's port, if it had the SYN that went there
  std::vector<Change> changes;               // on the way there
  std::vector<std::string> remarks;          // sentences: on the answer, and on this host
  bool interrupted = false;
};

// The SYN's way, compared from station to station; whole ones only for what is missing.
std::vector<Change> changes_between(const std::vector<Station>& stations);
// The options missing in the answer, and the cause as far as it is known.
std::vector<std::string> judge_answer(const OptionsReport& report);

struct OptionsRequest {
  std::string host;
  std::uint16_t port = 0;
  Wanted family = Wanted::any;
  unsigned most_hops = 30;
  std::chrono::milliseconds wait{1000};
};
OptionsReport probe_options(const OptionsRequest& request, const Stop& stop);
// A SYN as the kernel kept it (TCP_SAVED_SYN): IP header, TCP header.
std::optional<HeaderOptions> read_saved_syn(Bytes saved);

boost::json::object to_json(const OptionsReport& report);
void print(const OptionsReport& report, std::ostream& out);

}  // namespace longhaul::probe
