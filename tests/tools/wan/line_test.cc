// SPDX-License-Identifier: Apache-2.0
// The program at work between two hosts in namespaces of their own: what really arrives, and when.
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <catch2/catch.hpp>
#include <csignal>
#include <cstring>
#include <filesystem>

#include "tools/wan/calibrate/rig.h"
#include "tools/wan/calibrate/traffic.h"
#include "tools/wan/control.h"
#include "tools/wan/port.h"

using namespace longhaul::wan;
using namespace std::chrono_literals;

namespace {

// Namespaces and packet sockets need root; elsewhere there is nothing to test here.
bool can_run() {
  if (::geteuid() == 0) return true;
  WARN("not root: the line is not tried between real interfaces");
  return false;
}

class Folder {
 public:
  Folder() {
    std::string pattern = std::filesystem::temp_directory_path() / "longhaul-wan-XXXXXX";
    path_ = ::mkdtemp(pattern.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string socket() const { return path_ / "control"; }

 private:
  std::filesystem::path path_;
};

std::uint64_t count(const boost::json::value& stats, const char* direction, const char* counter) {
  return stats.at(direction).at(counter).to_number<std::uint64_t>();
}

// What the hosts' kernels say by themselves may still be on the line when it ends.
std::uint64_t delivered_or_inside(const boost::json::value& stats) {
  return count(stats, "a_to_b", "packets_out") + count(stats, "a_to_b", "packets_inside");
}

// The shortest round trip of a few pings: whatever else the machine does, it only adds.
double shortest_ping_ms(const Rig& rig, const std::string& to) {
  const std::string said = run_inside(rig.left(), {"ping", "-q", "-c", "10", "-i", "0.02", "-W", "5", to});
  return std::stod(said.substr(said.find(" = ") + 3));
}

bool reachable(const Rig& rig, const std::vector<std::string>& options) {
  std::vector<std::string> words{"ping", "-q", "-c", "1", "-W", "1"};
  words.insert(words.end(), options.begin(), options.end());
  try {
    run_inside(rig.left(), words);
    return true;
  } catch (const std::runtime_error&) {
    return false;
  }
}

}  // namespace

TEST_CASE("a ping over the line takes the delay of both directions, for both families") {
  if (!can_run()) return;
  const Rig rig;
  RunningLine line{rig, LONGHAUL_WAN, {"--a-to-b-delay", "30ms", "--b-to-a-delay", "10ms"}};
  for (const char* to : {Rig::kRightAddress, Rig::kRightAddress6}) {
    const double milliseconds = shortest_ping_ms(rig, to);
    CHECK(milliseconds >= 40);
    CHECK(milliseconds < 43);
  }
}

TEST_CASE("a full line delivers its rate, and every packet is accounted for") {
  if (!can_run()) return;
  const auto is_punctual = [](bool ipv6, bool is_last_try) {
    const Rig rig;
    RunningLine line{rig, LONGHAUL_WAN, {"--rate", "20mbit", "--queue", "100ms"}};
    const Received received = send_and_count(
        rig, {.rate_bits = 30e6, .duration = 800ms, .settle = 50ms, .quiet = 2s, .ipv6 = ipv6});
    const auto stats = line.finish();
    // On a host that stands still for a while the receiver may give up before the emulator has read all packets, and
    // less than a second does not show the line's rate.
    const bool was_late = stats.at("a_to_b").at("lateness_us").at("max").to_number<double>() > 2000;
    if (was_late && !is_last_try) return false;
    CHECK(count(stats, "a_to_b", "dropped_queue") + received.all_packets == received.sent);
    CHECK(count(stats, "a_to_b", "dropped_queue") > 0);
    CHECK(count(stats, "a_to_b", "queue_peak_bytes") <= 250'000);
    CHECK(count(stats, "a_to_b", "queue_peak_bytes") > 247'000);
    for (const char* counter :
         {"oversized", "dropped_ring", "dropped_memory", "send_failed", "lost", "packets_inside"})
      CHECK(count(stats, "a_to_b", counter) == 0);
    if (was_late)
      WARN("the host was too busy to show the line's rate");
    else
      CHECK(received.rate_bits(1500) == Approx(20e6).epsilon(0.01));
    return true;
  };
  for (const bool ipv6 : {false, true})
    for (int tries = 1; !is_punctual(ipv6, tries == 5); ++tries) {
    }
}

TEST_CASE("a clean line does not lose, repeat or invent packets") {
  if (!can_run()) return;
  const Rig rig;
  RunningLine line{rig, LONGHAUL_WAN, {"--delay", "5ms"}};
  const Received received = send_and_count(
      rig, {.rate_bits = 40e6, .packet_bytes = 200, .packets = 10'000, .duration = 20s, .quiet = 2s});
  CHECK(received.sent == 10'000);
  CHECK(received.all_packets == 10'000);
  const auto stats = line.finish();
  CHECK(delivered_or_inside(stats) == count(stats, "a_to_b", "packets_in"));
}

TEST_CASE("losses and duplicates at the far end are those that the line counts") {
  if (!can_run()) return;
  const Rig rig;
  RunningLine line{rig, LONGHAUL_WAN, {"--a-to-b-loss", "10%", "--a-to-b-duplicate", "5%", "--delay", "2ms"}};
  const Received received = send_and_count(
      rig, {.rate_bits = 40e6, .packet_bytes = 200, .packets = 5'000, .duration = 20s, .quiet = 2s});
  const auto stats = line.finish();
  const auto lost = count(stats, "a_to_b", "lost");
  CHECK(lost == Approx(500).margin(100));
  // What the hosts' kernels say by themselves (neighbours, multicast groups) is lost and copied too.
  const auto strangers = count(stats, "a_to_b", "packets_in") - 5'000;
  CHECK(strangers < 20);
  CHECK(received.all_packets + strangers >= 5'000 - lost + count(stats, "a_to_b", "duplicated"));
  CHECK(received.all_packets <= 5'000 - lost + count(stats, "a_to_b", "duplicated") + strangers);
  CHECK(delivered_or_inside(stats) ==
        count(stats, "a_to_b", "packets_in") - lost + count(stats, "a_to_b", "duplicated"));
}

TEST_CASE("a running line is changed and read through its control socket") {
  if (!can_run()) return;
  const Folder folder;
  const Rig rig;
  RunningLine line{rig, LONGHAUL_WAN, {"--delay", "100ms", "--control", folder.socket()}};
  CHECK(shortest_ping_ms(rig, Rig::kRightAddress) >= 200);
  const auto answer = boost::json::parse(ask(folder.socket(), "set delay=5ms rate=10mbit", 5s));
  CHECK(count(answer, "a_to_b", "rate_bits") == 10'000'000);
  CHECK(shortest_ping_ms(rig, Rig::kRightAddress) < 100);
  const auto before = boost::json::parse(ask(folder.socket(), "stats reset", 5s));
  CHECK(count(before, "b_to_a", "packets_out") >= 20);
  CHECK(count(boost::json::parse(ask(folder.socket(), "stats", 5s)), "b_to_a", "packets_out") == 0);

  // All or nothing: the good part of a bad command is not applied either.
  CHECK(boost::json::parse(ask(folder.socket(), "set delay=1ms loss=7", 5s)).as_object().contains("error"));
  CHECK(boost::json::parse(ask(folder.socket(), "sing", 5s)).as_object().contains("error"));
  const auto after = boost::json::parse(ask(folder.socket(), "stats", 5s));
  CHECK(after.at("a_to_b").at("line").at("delay_ms").to_number<double>() == 5);

  struct stat socket {};
  REQUIRE(::stat(folder.socket().c_str(), &socket) == 0);
  CHECK((socket.st_mode & 0777) == 0600);
  line.finish();
  CHECK_FALSE(std::filesystem::exists(folder.socket()));
}

TEST_CASE("a control socket in use is not replaced, a stale one is") {
  if (!can_run()) return;
  const Folder folder;
  const Rig rig;
  const Rig other;
  {
    RunningLine line{rig, LONGHAUL_WAN, {"--control", folder.socket()}};
    CHECK_THROWS_WITH((RunningLine{other, LONGHAUL_WAN, {"--control", folder.socket()}}),
                      Catch::Contains("another emulator already uses"));
    line.process().signal(SIGKILL);
  }
  REQUIRE(std::filesystem::exists(folder.socket()));
  RunningLine line{other, LONGHAUL_WAN, {"--control", folder.socket()}};
  CHECK_FALSE(boost::json::parse(ask(folder.socket(), "stats", 5s)).as_object().contains("error"));
}

TEST_CASE("offloaded checksums arrive completed, and oversized segments are refused and counted") {
  if (!can_run()) return;
  const Rig rig;
  run_inside(rig.left(), {"ethtool", "-K", Rig::kLeftDevice, "tx", "on", "tso", "on", "gso", "on"});
  RunningLine line{rig, LONGHAUL_WAN, {}};
  for (const bool ipv6 : {false, true}) {
    const Received received = send_and_count(rig, {.rate_bits = 10e6,
                                                   .packet_bytes = 777,
                                                   .packets = 200,
                                                   .duration = 5s,
                                                   .quiet = 2s,
                                                   .ipv6 = ipv6});
    CHECK(received.all_packets == 200);
  }
  // A TCP sender that may make segments of 64 KiB does; those do not fit a line of 1500 bytes.
  Program server{rig.right(), {"iperf3", "-s", "-1", "--forceflush"}};
  server.await_text("listening", 5s);
  Program client{rig.left(), {"iperf3", "-c", Rig::kRightAddress, "-n", "300K", "-J"}};
  try {
    client.finish(1s);
  } catch (const std::runtime_error&) {
    // It crawls: only what is repeated in single packets gets through.
  }
  const auto stats = line.finish();
  CHECK(count(stats, "a_to_b", "checksums_finished") >= 400);
  CHECK(count(stats, "a_to_b", "oversized") > 0);
}

TEST_CASE("a VLAN tag, which the kernel keeps apart from the frame, is preserved across the line") {
  if (!can_run()) return;
  const Rig rig;
  const auto port_in = [](const Namespace& host, const char* device) {
    const Inside inside{host};
    return open_port(device);
  };
  const auto left = port_in(rig.left(), Rig::kLeftDevice);
  const auto right = port_in(rig.right(), Rig::kRightDevice);
  RunningLine line{rig, LONGHAUL_WAN, {}};
  std::vector<std::byte> frame(100, std::byte{0x5a});
  const std::array<unsigned char, 6> tag_and_type{0x81, 0x00, 0x60,
                                                  0x07, 0x88, 0xb5};  // 802.1Q, VLAN 7; test type
  std::memcpy(frame.data() + 12, tag_and_type.data(), tag_and_type.size());
  left->send(std::array{std::span<const std::byte>(frame)});

  bool found = false;
  pollfd readable{right->descriptor(), POLLIN, 0};
  while (!found && ::poll(&readable, 1, 5000) > 0)
    while (const auto arrival = right->receive())
      found |= std::equal(arrival->frame.begin(), arrival->frame.end(), frame.begin(), frame.end());
  CHECK(found);
}

TEST_CASE("full-sized packets pass and larger interfaces may send larger ones") {
  if (!can_run()) return;
  const Rig rig;
  {
    RunningLine line{rig, LONGHAUL_WAN, {}};
    CHECK(reachable(rig, {"-M", "do", "-s", "1472", Rig::kRightAddress}));
  }
  for (const char* end : {Rig::kEndA, Rig::kEndB})
    run_inside(rig.middle(), {"ip", "link", "set", end, "mtu", "9000"});
  run_inside(rig.left(), {"ip", "link", "set", Rig::kLeftDevice, "mtu", "9000"});
  run_inside(rig.right(), {"ip", "link", "set", Rig::kRightDevice, "mtu", "9000"});
  RunningLine line{rig, LONGHAUL_WAN, {}};
  CHECK(reachable(rig, {"-M", "do", "-s", "8972", Rig::kRightAddress}));
}

TEST_CASE("a line survives its interface going down and up, and ends with a sentence when it is removed") {
  if (!can_run()) return;
  const Rig rig;
  RunningLine line{rig, LONGHAUL_WAN, {}};
  run_inside(rig.middle(), {"ip", "link", "set", Rig::kEndA, "down"});
  run_inside(rig.middle(), {"ip", "link", "set", Rig::kEndA, "up"});
  // The left host's interface lost its carrier and finds it again by itself; the first pings may be too early
  // for it.
  bool back = false;
  for (int attempt = 0; attempt < 10 && !back; ++attempt) back = reachable(rig, {Rig::kRightAddress});
  CHECK(back);
  run_inside(rig.middle(), {"ip", "link", "del", Rig::kEndB});
  CHECK_THROWS_WITH(line.process().finish(5s), Catch::Contains("interface end-b has disappeared"));
}

TEST_CASE("TAP devices can be joined like interfaces") {
  if (!can_run()) return;
  const Rig rig;
  // The far end is a TAP device of the middle, which answers pings itself; the near end is the left host's
  // cable.
  Program process{rig.middle(),
                  {LONGHAUL_WAN, "run", "--a", Rig::kEndA, "--b", "tap:tap0", "--delay", "3ms"}};
  process.await_text(" is up", 5s);
  run_inside(rig.middle(), {"ip", "address", "add", "10.98.0.9/24", "dev", "tap0"});
  CHECK(shortest_ping_ms(rig, "10.98.0.9") >= 6);
}

TEST_CASE("invalid interfaces and settings are reported in a sentence") {
  if (!can_run()) return;
  const Rig rig;
  const auto said = [&](const std::vector<std::string>& arguments) {
    std::vector<std::string> words{LONGHAUL_WAN};
    words.insert(words.end(), arguments.begin(), arguments.end());
    try {
      return run_inside(rig.middle(), words);
    } catch (const std::runtime_error& error) {
      return std::string("refused: ") + error.what();
    }
  };
  const std::string a = Rig::kEndA;
  const std::string b = Rig::kEndB;
  CHECK_THAT(said({"run", "--a", a, "--b", "nothing0"}), Catch::Contains("no interface \"nothing0\""));
  CHECK_THAT(said({"run", "--a", a, "--b", b, "--rate", "fast"}), Catch::Contains("\"fast\" is not a rate"));
  CHECK_THAT(said({"run", "--a", a, "--b", a}), Catch::Contains("two different interfaces"));
  CHECK_THAT(said({"stats", "--control", "/nonexistent/socket"}), Catch::Contains("no emulator answers"));
}
