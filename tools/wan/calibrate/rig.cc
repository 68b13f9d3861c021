// SPDX-License-Identifier: Apache-2.0
// Builds the rig with ip(8), as a person would.
#include "tools/wan/calibrate/rig.h"

#include <boost/json/parse.hpp>
#include <csignal>
#include <fstream>
#include <stdexcept>

namespace longhaul::wan {
namespace {

using namespace std::chrono_literals;

void ip(const Namespace& where, const std::string& words) {
  std::vector<std::string> arguments{"ip"};
  for (std::size_t from = 0; from < words.size();) {
    const auto to = std::min(words.find(' ', from), words.size());
    arguments.push_back(words.substr(from, to - from));
    from = to + 1;
  }
  run_inside(where, arguments);
}

void sysctl(const Namespace& where, const std::string& name, const std::string& value) {
  const Inside inside{where};
  std::ofstream file{"/proc/sys/net/" + name};
  if (!(file << value << std::flush)) throw std::runtime_error("cannot set /proc/sys/net/" + name);
}

void set_up_host(const Namespace& host, const std::string& device, const std::string& v4,
                 const std::string& v6) {
  ip(host, "link set lo up");
  ip(host, "address add " + v4 + "/24 dev " + device);
  ip(host, "address add " + v6 + "/64 dev " + device + " nodad");
  // Packets on the line must be packets: no segment larger than the MTU leaves a host.
  run_inside(host, {"ethtool", "-K", device, "tso", "off", "gso", "off", "gro", "off", "tx", "off"});
  ip(host, "link set " + device + " up");
}

}  // namespace

Rig::Rig() {
  // No router solicitations or multicast reports: an idle line is idle, and a count of packets is ours alone.
  for (const Namespace* host : {&left_, &right_})
    for (const char* name : {"ipv6/conf/default/router_solicitations", "ipv6/conf/default/accept_ra"})
      sysctl(*host, name, "0");
  sysctl(middle_, "ipv6/conf/default/disable_ipv6", "1");
  const std::string middle = middle_.path();
  ip(left_, std::string("link add ") + kLeftDevice + " type veth peer name " + kEndA + " netns " + middle);
  ip(right_, std::string("link add ") + kRightDevice + " type veth peer name " + kEndB + " netns " + middle);
  ip(middle_, std::string("link set ") + kEndA + " up");
  ip(middle_, std::string("link set ") + kEndB + " up");
  set_up_host(left_, kLeftDevice, kLeftAddress, kLeftAddress6);
  set_up_host(right_, kRightDevice, kRightAddress, kRightAddress6);
}

void Rig::limit_cards(const std::string& rate) const {
  for (const auto& [host, device] : {std::pair{&left_, kLeftDevice}, std::pair{&right_, kRightDevice}}) {
    if (rate.empty())
      run_inside(*host, {"tc", "qdisc", "del", "dev", device, "root"});
    else
      run_inside(*host, {"tc", "qdisc", "replace", "dev", device, "root", "tbf", "rate", rate, "burst", "16k",
                         "latency", "50ms"});
  }
}

RunningLine::RunningLine(const Rig& rig, const std::string& program, const std::vector<std::string>& settings)
    : process_(rig.middle(), [&] {
        std::vector<std::string> words{program, "run", "--a", Rig::kEndA, "--b", Rig::kEndB};
        words.insert(words.end(), settings.begin(), settings.end());
        return words;
      }()) {
  process_.await_text(" is up", 5s);
}

boost::json::value RunningLine::finish() {
  process_.signal(SIGTERM);
  return boost::json::parse(process_.finish(5s));
}

Switch::Switch(const Rig& rig) : rig_(rig) {
  ip(rig_.middle(), "link add switch0 type bridge");
  for (const std::string end : {Rig::kEndA, Rig::kEndB})
    ip(rig_.middle(), "link set " + end + " master switch0");
  ip(rig_.middle(), "link set switch0 up");
}

Switch::~Switch() {
  try {
    ip(rig_.middle(), "link del switch0");
  } catch (const std::exception&) {
    // The rig ends together with it, so there is no reader for an error.
  }
}

}  // namespace longhaul::wan
