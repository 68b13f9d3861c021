// SPDX-License-Identifier: Apache-2.0
// Tests the steering commands as typed, against the control API before a fake daemon.
#include "proxy/cli/steer.h"

#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <boost/json/parse.hpp>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "cli11.h"
#include "proxy/control/fake_daemon.h"
#include "tests/proxy/cli/typed.h"

using namespace longhaul;
using cli::has;
using cli::Typed;
using cli::unwrapped;
using control::RunningApi;
namespace fs = std::filesystem;
namespace json = boost::json;

namespace {

// A shell beside the daemon: knows its port, has its token in a state_dir.
class Shell {
 public:
  explicit Shell(const std::string& port) : address_("127.0.0.1:" + port) {
    auto pattern = (fs::temp_directory_path() / "longhaul-steer-XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    state_dir_ = pattern;
    write_token(control::kTestToken);
  }
  ~Shell() { fs::remove_all(state_dir_); }

  void write_token(const std::string& token) const {
    std::ofstream(token_file()) << token << '\n';
    fs::permissions(token_file(), fs::perms::owner_read | fs::perms::owner_write);
  }
  fs::path token_file() const { return state_dir_ / "control.token"; }
  const std::string& address() const { return address_; }

  Typed type(std::vector<std::string> words) const {
    Typed typed;
    std::ostringstream out, errors;
    CLI::App app;
    cli::add_steering_commands(app, out, errors, typed.exit_code);
    words.insert(words.end(), {"--control", address_, "--state-dir", state_dir_.string()});
    std::reverse(words.begin(), words.end());
    app.parse(std::move(words));
    typed.out = out.str();
    typed.errors = errors.str();
    return typed;
  }

 private:
  std::string address_;
  fs::path state_dir_;
};

}  // namespace

TEST_CASE("status shows the daemon, its links and its reasons") {
  RunningApi api;
  api.daemon.add_flow("10.0.0.1:5000-10.0.2.2:445");
  auto down = control::link_up("branch-2");
  down.state = link::LinkState::down;
  down.last_error = "connection refused";
  down.smoothed_rtt = {};
  api.daemon.now.links.push_back(down);
  api.daemon.now.links.front().unlike_modules = {{"smb", 13, 12}, {"http", 2, 0}};
  api.start();
  const Shell shell{api.port()};
  auto typed = shell.type({"status"});
  CHECK(typed.exit_code == 0);
  CHECK(typed.errors.empty());
  typed.out = unwrapped(typed.out);
  CHECK(has(typed.out, "branch, longhaul 0.1.0, up 1m 30s"));
  CHECK(has(typed.out, "1 live of at most 16384"));
  CHECK(has(typed.out, "do not serve them: smb (13 here, 12 there), http (2 here, none there)"));
  CHECK(has(typed.out,
            "3.00 MiB of 512 MiB: credit 1.00 MiB of 90.0 MiB, ahead 2.00 MiB of 64.0 MiB"));
  CHECK(has(typed.out,
            "1.00 GiB of 4.00 GiB in 260 segments; 1.00 GiB written, 3.00 MiB loaded, 2 refused (disk or "
            "write queue full), 1 damaged and dropped"));
  CHECK(has(typed.out, "transport=auto"));
  CHECK(has(typed.out,
            "datacenter: UDP works but is not used, paced at 48.0 Mbit/s (below the configured rate: the "
            "line carries less), 20 of 2000 packets lost"));
  CHECK(has(
      typed.out,
      "datacenter: reduction, sent: 977 KiB, 8.0 % after deduplication, 5.0 % after compression; received: nothing; "
      "dictionaries 64.0 MiB of 256 MiB out, 0 B of 0 B in, 3 blocks requested again"));
  CHECK(has(typed.out, "IN REDUCED TO"));
  CHECK(has(typed.out, "branch-2:   last connection error: connection refused"));
  CHECK(has(typed.out, "optimised"));
  CHECK_FALSE(has(typed.out, "link_silent"));
  CHECK(json::parse(shell.type({"status", "--json"}).out).at("site") == "branch");
}

TEST_CASE("flows lists all pages of live flows, filtered as requested") {
  RunningApi api;
  for (int i = 0; i < 2500; ++i)
    api.daemon.add_flow("10.0.0.1:" + std::to_string(10'000 + i) + "-10.0.2.2:445");
  api.daemon.add_flow("[fd00::1]:5001-192.0.2.1:80", flows::reasons::no_peer_for_network);
  api.start();
  const Shell shell{api.port()};
  const auto all = json::parse(shell.type({"flows", "--json"}).out);
  CHECK(all.at("flows").as_array().size() == 2501);
  CHECK(all.at("live") == 2501u);
  CHECK(json::parse(shell.type({"flows", "--json", "--limit", "1200"}).out).at("flows").as_array().size() ==
        1200);
  for (const auto& filter :
       {std::vector<std::string>{"--port", "80"}, {"--reason", "no_peer_for_network"}, {"--peer", ""}}) {
    std::vector<std::string> words{"flows"};
    words.insert(words.end(), filter.begin(), filter.end());
    const auto typed = shell.type(words);
    CHECK(has(typed.out, "[fd00::1]:5001"));
    CHECK(has(typed.out, "1 of 2501 live flows"));
    CHECK_FALSE(has(typed.out, "10.0.0.1:"));
  }
  CHECK(has(shell.type({"flows", "--port", "1"}).out, "no flow matches (2501 live flows)"));
  const auto bad = shell.type({"flows", "--reason", "bored"});
  CHECK(bad.exit_code == 1);
  CHECK(has(bad.errors, "link_never_up"));
}

TEST_CASE("screens fit a hundred columns, however long addresses and names are") {
  RunningApi api;
  const std::string client = "[2001:db8:1111:2222:3333:4444:5555:6666]:51234";
  api.daemon.add_flow(client + "-[2001:db8:7777:8888:9999:aaaa:bbbb:cccc]:60445");
  api.daemon.now.links.push_back(control::link_up(std::string(63, 'p')));
  api.start();
  const Shell shell{api.port()};
  for (const char* command : {"flows", "status"}) {
    const auto typed = shell.type({command});
    CHECK(typed.exit_code == 0);
    std::istringstream lines(typed.out);
    for (std::string line; std::getline(lines, line);) {
      CAPTURE(line);
      CHECK(line.size() <= 100);
    }
  }
  CHECK(has(shell.type({"flows"}).out, client));
  CHECK(has(shell.type({"flows"}).out, "[2001:db8:7777:8888:9999:aaaa:bbbb:cccc]:60445"));
  CHECK(has(shell.type({"status"}).out, std::string(63, 'p') + ":"));
}

TEST_CASE("why explains a flow by number or by addresses, live or ended") {
  RunningApi api;
  api.daemon.add_flow("10.0.0.1:5000-192.0.2.1:80", flows::reasons::no_peer_for_network);
  api.start();
  const Shell shell{api.port()};
  for (const auto* flow : {"1", "10.0.0.1:5000-192.0.2.1:80"}) {
    auto typed = shell.type({"why", flow});
    typed.out = unwrapped(typed.out);
    CHECK(typed.exit_code == 0);
    CHECK(has(typed.out, "10.0.0.1:5000 to 192.0.2.1:80"));
    CHECK(has(typed.out, "bypassing the link"));
    CHECK(has(typed.out, "no_peer_for_network"));
    CHECK(has(typed.out, flows::reasons::no_peer_for_network.remedy));
    CHECK(has(typed.out, "compression=true"));
  }
  auto would = shell.type({"why", "[fd00::1]:5000-10.0.2.2:445"});
  would.out = unwrapped(would.out);
  CHECK(has(would.out, "is not live; a new connection would use the link to datacenter"));
  CHECK(has(would.out, "[[rule]] number 1 matches"));
  auto& link = api.daemon.now.links.front();
  api.on_loop([&] {
    api.daemon.add_flow("10.0.0.1:6000-10.0.2.2:80");
    link.state = link::LinkState::silent;
  });
  auto hangs = shell.type({"why", "2"});
  hangs.out = unwrapped(hangs.out);
  CHECK(has(hangs.out, "link_silent"));
  CHECK(has(hangs.out, "the flow waits for the link"));
  CHECK_FALSE(has(hangs.out, "none needed"));
  api.on_loop([&] {
    api.daemon.add_flow("10.0.0.1:7000-10.0.2.2:80").reset_by = flows::ResetBy::server;
    api.daemon.table.remove(3, flows::FlowTable::End::reset);
    link.state = link::LinkState::up;
  });
  auto reset = shell.type({"why", "3"});
  reset.out = unwrapped(reset.out);
  CHECK(has(reset.out, "reset by the server, no longer live"));
  CHECK(has(reset.out, "The server refused or reset the connection."));
  CHECK_FALSE(has(reset.out, "none needed"));
  CHECK(has(unwrapped(shell.type({"why", "10.0.0.1:7000-10.0.2.2:80"}).out), "was reset by the server"));
  CHECK(json::parse(shell.type({"status", "--json"}).out).at("flows").at("reset_by").at("server") == 1);
  const auto gone = shell.type({"why", "77"});
  CHECK(gone.exit_code == 1);
  CHECK(has(gone.errors, "flow 77 is not live"));
  CHECK(has(shell.type({"why", "nonsense"}).errors, "CLIENT:PORT-SERVER:PORT"));
}

TEST_CASE("why explains a server and port before there is a flow") {
  RunningApi api;
  api.start();
  const Shell shell{api.port()};
  for (const auto& words : {std::vector<std::string>{"why", "10.0.2.2", "445"}, {"why", "10.0.2.2:445"}}) {
    const auto typed = shell.type(words);
    CHECK(typed.exit_code == 0);
    CHECK(has(unwrapped(typed.out), "a new connection from 10.0.0.7 (assumed) to 10.0.2.2:445 would use the link to datacenter"));
    CHECK(has(typed.out, "[[rule]] number 1 matches"));
  }
  CHECK(has(unwrapped(shell.type({"why", "fd00::2", "80"}).out), "from fd00::7 (assumed) to [fd00::2]:80 would bypass the link"));
  const auto name = shell.type({"why", "files-1.corp", "445"});
  CHECK(name.exit_code == 1);
  CHECK(has(name.errors, "no client network can reach \"files-1.corp:445\""));
  CHECK(has(shell.type({"why", "10.0.2.2", "port"}).errors, "port"));
}

TEST_CASE("status, flows and why fit a screen of 100 columns") {
  RunningApi api;
  api.daemon.add_flow("10.10.11.112:50001-10.10.120.202:44500").bytes = {123'456'789, 123'456'789, 1 << 20, 1 << 20};
  api.daemon.add_flow("10.10.11.112:50002-10.10.120.202:44500", flows::reasons::no_peer_for_network);
  const control::RecentRates::TimePoint now;
  auto& rates = api.daemon.now.rates;
  rates.add({now, {}, {{"datacenter", {}}}});
  rates.add({now + std::chrono::seconds(1), {1'500'000, 125'000, 12'500, 750'000}, {{"datacenter", {750'000, 12'500}}}});
  api.start();
  const Shell shell{api.port()};
  const auto status = shell.type({"status"}).out;
  const auto first = unwrapped(status);
  CHECK(has(first.substr(0, first.find('\n')), "WAN now 6.00 Mbit/s out, 100 kbit/s in"));
  CHECK(has(status, "now         LAN in 12.0 Mbit/s, out 1.00 Mbit/s; WAN in 100 kbit/s, out 6.00 Mbit/s"));
  CHECK(json::parse(shell.type({"status", "--json"}).out).at("links").at(0).at("throughput").at("out_bits") == 6'000'000);
  CHECK(has(shell.type({"flows"}).out,
            "\nToo wide for this screen: PEER; longhaul flows --json prints all.\n"));
  for (const auto& text : {status, shell.type({"flows"}).out, shell.type({"why", "1"}).out, shell.type({"top"}).out}) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      INFO(line);
      CHECK(line.size() <= 100);
    }
  }
}

TEST_CASE("set changes features with the token, and prints what changed") {
  RunningApi api;
  api.start();
  const Shell shell{api.port()};
  CHECK(has(shell.type({"set"}).out, "compression              true"));
  auto typed = shell.type({"set", "preset=T", "fec=10:2"});
  CHECK(typed.exit_code == 0);
  CHECK(has(typed.out, "smb is now false"));
  CHECK(has(typed.out, "fec is now 10:2"));
  CHECK(has(typed.out, "until the daemon restarts"));
  CHECK(api.on_loop([&] { return api.daemon.in_force.modules.value("smb"); }) == 0);
  CHECK(has(shell.type({"set", "smb=false"}).out, "nothing changed"));

  typed = shell.type({"set", "colour=red"});
  CHECK(typed.exit_code == 1);
  CHECK(has(typed.errors, "colour"));
  typed = shell.type({"set", "compression"});
  CHECK(typed.exit_code == 1);
  CHECK(has(typed.errors, "FEATURE=VALUE"));
}

TEST_CASE("reload prints what changed, or why nothing did") {
  RunningApi api;
  api.start();
  const Shell shell(api.port());
  CHECK(shell.type({"reload"}).out == "changed [[peer]] datacenter: fingerprint\n");
  api.on_loop([&] { return api.daemon.mistake = "b.toml:7: no"; });
  const auto refused = shell.type({"reload"});
  CHECK(refused.exit_code == 1);
  CHECK(has(refused.errors, "b.toml:7: no"));
}

TEST_CASE("commands clear the cache and switch interception") {
  RunningApi api;
  api.start();
  const Shell shell{api.port()};
  CHECK(shell.type({"clear-cache"}).out ==
        "cleared 1.00 MiB in memory and 5.00 MiB on disk\n"
        "datacenter cleared 7.00 MiB on its disk\n"
        "b has not reported what it cleared\n"
        "the encryption key of the dictionary on disk was destroyed: copies of its files can no longer be\n"
        "            decrypted\n");
  CHECK(shell.type({"intercept", "up"}).out == "interception is up\n");
  CHECK(shell.type({"intercept", "print"}).out == "# installed\ntable inet longhaul {\n}\n");
  api.on_loop([&] { api.daemon.now.fail_closed = control::FailClosed::enforced; });
  CHECK(shell.type({"intercept", "print"}).out ==
        "# installed\ntable inet longhaul {\n}\n# fail = closed is enforced\ntable inet longhaul_closed {\n}\n");
  CHECK(unwrapped(shell.type({"status"}).out).find("flows that must use the link are refused while it is down") != std::string::npos);
  CHECK(shell.type({"intercept", "down"}).out == "interception is down\n");
  api.on_loop([&] { api.daemon.now.intercept = control::InterceptState::not_configured; });
  const auto typed = shell.type({"intercept", "up"});
  CHECK(typed.exit_code == 1);
  CHECK(typed.errors == "longhaul: [intercept] names no interfaces.\n");
  CHECK_THROWS_AS(shell.type({"intercept", "sideways"}), CLI::ParseError);
}

TEST_CASE("a wrong, missing or unprotected token is reported with its file, and only changes need it") {
  RunningApi api;
  api.start();
  const Shell shell{api.port()};
  const auto failed = [&](std::string_view what) {
    const auto typed = shell.type({"set", "preset=T"});
    CHECK(typed.exit_code == 1);
    CHECK(typed.out.empty());
    CHECK(has(typed.errors, what));
    CHECK(has(typed.errors, shell.token_file().string()));
    CHECK(has(typed.errors, "--token-file"));
    CHECK(shell.type({"status"}).exit_code == 0);
  };
  shell.write_token(std::string(64, 'f'));
  failed("rejects the token");
  fs::permissions(shell.token_file(), fs::perms::all);
  failed("can be read by other users");
  fs::remove(shell.token_file());
  failed("there is no control token file");
  CHECK(api.on_loop([&] { return api.daemon.in_force.modules.value("smb"); }) == 1);
}

TEST_CASE("a missing or silent daemon, or another server at the address, is reported with the address") {
  std::string port;
  {
    const RunningApi api;
    port = api.port();
  }
  const Shell shell{port};
  const auto typed = shell.type({"status"});
  CHECK(typed.exit_code == 1);
  CHECK(typed.errors == "longhaul: cannot connect to the daemon at " + shell.address() +
                            ": connection refused; is `longhaul run` running?\n");

  boost::asio::io_context loop;
  boost::asio::ip::tcp::acceptor other(loop, {boost::asio::ip::address_v4::loopback(), 0});
  const auto answer_with = [&](const std::string& text) {
    std::thread server([&] {
      auto socket = other.accept();
      std::array<char, 1024> request;
      socket.read_some(boost::asio::buffer(request));
      boost::asio::write(socket, boost::asio::buffer(text));
    });
    const Shell beside{std::to_string(other.local_endpoint().port())};
    const auto result = beside.type({"status"});
    server.join();
    CHECK(result.exit_code == 1);
    return result.errors;
  };
  CHECK(has(answer_with("220 smtp.example ready\r\n"), "is not longhaul's control API"));
  CHECK(has(answer_with("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>"),
            "is not longhaul's control API"));
  CHECK(has(answer_with("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"), "different versions"));
  CHECK(has(answer_with(""), "closed the connection without an answer"));
}

TEST_CASE("an invalid control address is reported as it was typed") {
  std::ostringstream out, errors;
  int exit_code = -1;
  CLI::App app;
  cli::add_steering_commands(app, out, errors, exit_code);
  app.parse(std::vector<std::string>{"7601", "--control", "status"});
  CHECK(exit_code == 1);
  CHECK(has(errors.str(), "--control 7601 has no port"));
}

TEST_CASE("flows can be selected by client, server and text, and shown repeatedly") {
  RunningApi api;
  api.daemon.add_flow("10.0.0.1:5000-10.0.2.2:445");
  api.daemon.add_flow("10.0.9.1:5000-10.0.2.3:80");
  api.start();
  const Shell shell{api.port()};
  CHECK_FALSE(has(shell.type({"flows", "--client", "10.0.0.0/24"}).out, "10.0.9.1"));
  CHECK_FALSE(has(shell.type({"flows", "--server", "10.0.2.3"}).out, "10.0.0.1"));
  CHECK_FALSE(has(shell.type({"flows", "--search", ":445"}).out, "10.0.9.1"));
  const auto watched = shell.type({"flows", "--watch", "--count", "2", "--interval", "0.1", "--client", "10.0.9.1"});
  CHECK(watched.exit_code == 0);
  const auto first = watched.out.find("10.0.9.1");
  CHECK(watched.out.find("10.0.9.1", first + 1) != std::string::npos);
  CHECK_FALSE(has(watched.out, "10.0.0.1"));
  CHECK(shell.type({"flows", "--client", "somebody"}).exit_code == 1);
}

TEST_CASE("top prints one frame when the output is no terminal") {
  RunningApi api;
  api.daemon.add_flow("10.0.0.1:5000-10.0.2.2:445").bytes = {1 << 20, 0, 0, 1 << 10};
  api.start();
  const Shell shell{api.port()};
  const auto typed = shell.type({"top"});
  CHECK(typed.exit_code == 0);
  CHECK(has(typed.out, "datacenter"));
  CHECK(has(typed.out, "10.0.0.1"));
  CHECK(json::parse(shell.type({"top", "--json"}).out).at("clients").at(0).at("name") == "10.0.0.1");
}

TEST_CASE("page prints the address of the page with the token in the fragment") {
  RunningApi api;
  api.start();
  const Shell shell{api.port()};
  CHECK(shell.type({"page"}).out == "http://" + shell.address() + "/#token=" + control::kTestToken + "\n");
  fs::remove(shell.token_file());
  const auto without = shell.type({"page"});
  CHECK(without.exit_code == 1);
  CHECK(has(without.errors, "control token"));
}
