// SPDX-License-Identifier: Apache-2.0
// Asks for missing options, checks everything before it writes, and changes nothing on the host except its
// own files.
#include "proxy/cli/init_command.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <ostream>
#include <sstream>
#include <stdexcept>

#include "proxy/cli/command_line.h"
#include "proxy/cli/host_needs.h"
#include "proxy/cli/wrap.h"
#include "proxy/cli/init_texts.h"
#include "proxy/config/read.h"
#include "proxy/identity/identity.h"
#include "proxy/identity/keygen.h"
#include "proxy/net/interfaces.h"

namespace longhaul::cli {
namespace {

namespace fs = std::filesystem;
namespace ip = boost::asio::ip;

struct InitTyped {
  std::string site, role, interface, own_address, folder;
  std::vector<std::string> own_networks;
  std::string peer, address, fingerprint;
  std::vector<std::string> networks;
};

class Refused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A documentation address (RFC 5737): shows where the default route leads.
const ip::address kSomewhere = ip::make_address("192.0.2.1");

class Initialiser {
 public:
  Initialiser(const InitTyped& typed, std::istream& in, std::ostream& out, std::ostream& errors)
      : typed_(typed), in_(in), out_(out), errors_(errors), folder_(typed.folder), interfaces_(net::interfaces()) {
    if (folder_.empty()) folder_ = ::geteuid() == 0 ? "/etc/longhaul" : ".";
    file_ = (folder_ / "longhaul.toml").lexically_normal();
  }

  void run() {
    if (fs::exists(file_))
      add_peer();
    else
      make_site();
  }

 private:
  std::string ask(const std::string& value, const std::string& option, const std::string& question,
                  const std::string& proposal = "") {
    if (!value.empty()) return value;
    errors_ << question << (proposal.empty() ? "" : " [" + proposal + "]") << ": " << std::flush;
    std::string answer;
    if (!std::getline(in_, answer)) {
      errors_ << '\n';
      throw Refused(option + " is missing, and standard input ended before the answer; nothing was written");
    }
    const auto begin = answer.find_first_not_of(" \t"), end = answer.find_last_not_of(" \t\r");
    answer = begin == std::string::npos ? proposal : answer.substr(begin, end - begin + 1);
    if (answer.empty()) throw Refused(option + " is required; nothing was written");
    return answer;
  }

  static std::string own_host() {
    char name[256] = "";
    (void)::gethostname(name, sizeof name - 1);
    return std::string(name).substr(0, std::string_view(name).find('.'));
  }

  // The only interface that is neither the loopback nor leads to the WAN.
  std::string likely_lan() const {
    const auto source = net::source_towards(wan_address());
    const net::Interface* wan = source ? net::interface_with(interfaces_, *source) : nullptr;
    std::string found;
    for (const net::Interface& each : interfaces_) {
      if (each.networks.empty() || each.name == "lo" || (wan != nullptr && each.name == wan->name)) continue;
      if (!found.empty()) return {};
      found = each.name;
    }
    return found;
  }

  // With the port that init writes at the other site, where none was typed.
  std::string peer_address() const {
    const std::string& text = typed_.address;
    if (config::parse_host_port(text, config::HostKind::address_or_name)) return text;
    if (const auto alone = config::parse_address(text))
      return (alone->is_v6() ? "[" + text + "]" : text) + std::string(kPort);
    return text.empty() || text.find(':') != std::string::npos ? text : text + std::string(kPort);
  }

  ip::address wan_address() const {
    const auto at = config::parse_host_port(peer_address(), config::HostKind::address_or_name);
    const auto address = at ? config::parse_address(at->host) : std::nullopt;
    return address.value_or(kSomewhere);
  }

  // A warning if the interface towards the clients is the one that leads to the WAN, although the host has
  // others.
  std::string doubt_about_interfaces(const config::Config& config) const {
    const auto source = net::source_towards(wan_address());
    const net::Interface* wan = source ? net::interface_with(interfaces_, *source) : nullptr;
    const auto is_other_lan = [&](const net::Interface& each) {
      return each.name != "lo" && each.name != wan->name && !networks_of(each.name).empty();
    };
    if (wan == nullptr || std::ranges::find(config.intercept.interfaces, wan->name) == config.intercept.interfaces.end() ||
        std::ranges::none_of(interfaces_, is_other_lan))
      return {};
    return "The interface " + wan->name + " leads to " + (typed_.address.empty() ? "the default gateway" : "the peer") +
           ", so it may be the WAN; [intercept] interfaces is for the interfaces towards the clients.";
  }

  std::vector<std::string> networks_of(const std::string& interface) const {
    std::vector<std::string> texts;
    for (const net::Interface& each : interfaces_)
      if (each.name == interface)
        for (const config::Network& network : each.networks)
          if (!network.address.is_v6() || !network.address.to_v6().is_link_local()) texts.push_back(to_text(network));
    return texts;
  }

  std::optional<NewPeer> typed_peer() const {
    if (typed_.peer.empty()) {
      if (!typed_.fingerprint.empty() || !typed_.address.empty() || !typed_.networks.empty())
        throw Refused(
            "--address, --fingerprint and --networks describe the peer, but --peer NAME is missing; nothing "
            "was written");
      return std::nullopt;
    }
    if (typed_.fingerprint.empty())
      throw Refused("--fingerprint is missing: it is the fingerprint of the peer \"" + typed_.peer +
                    "\", which longhaul init or keygen printed there; nothing was written");
    NewPeer peer{.name = typed_.peer, .fingerprint = typed_.fingerprint, .networks = typed_.networks};
    if (!typed_.address.empty()) peer.address = peer_address();
    return peer;
  }

  NewSite asked_site() {
    NewSite site{.peer = typed_peer()};
    site.name = ask(typed_.site, "--site", "Name of this site", own_host());
    // A site with the peer's address connects to the peer.
    site.role = site.peer && site.peer->address ? Role::branch : Role::datacenter;
    site.interface = ask(typed_.interface, "--interface", "Interface towards the clients", likely_lan());
    site.networks = typed_.own_networks.empty() ? networks_of(site.interface) : typed_.own_networks;
    if (site.networks.empty())
      throw Refused("the interface " + site.interface +
                    " does not exist or has no address, so --own-networks (the networks of this site) is "
                    "required; nothing was written");
    return site;
  }

  // The role follows from the address; --role states it explicitly.
  void check_role() const {
    if (typed_.role == "branch" && typed_.peer.empty())
      throw Refused(
          "a branch connects to the other site: run longhaul init there first, then run here the command "
          "that "
          "it prints; nothing was written");
    if (typed_.role == "branch" && typed_.address.empty())
      throw Refused(
          "a branch connects to the other site: --address, the peer's address, is missing; nothing was "
          "written");
    if (typed_.role == "datacenter" && !typed_.address.empty())
      throw Refused("--address is only for a branch, which connects to that address; nothing was written");
  }

  void make_site() {
    check_role();
    const NewSite site = asked_site();
    const std::string text = configuration_text(site);
    (void)config::read_text(text, file_);  // throws before anything is written
    const std::string own = site.role == Role::datacenter ? asked_own_address() : "";

    make_folder();
    const identity::Made made = key_of(site.name);
    write(file_, text);
    out_ << wrapped("Created " + file_.string() + " and " + made.private_key.lexically_normal().string() +
                    " (private: keep it on this host).");
    if (site.role == Role::datacenter && !site.peer)
      out_ << "\nAt the other site, run:\n\n  ";
    else
      out_ << "\nAt the site \"" << site.peer->name
           << "\", unless it already has this site as a peer, run:\n\n  ";
    out_ << command_for_other_site(site, own, made.fingerprint) << "\n\n";
    say_needs();
  }

  // Refuses options that describe this site: they would have no effect on an existing file.
  void refuse_options_of_site() const {
    const std::pair<const char*, bool> given[] = {{"--site", !typed_.site.empty()},
                                                  {"--role", !typed_.role.empty()},
                                                  {"--interface", !typed_.interface.empty()},
                                                  {"--own-networks", !typed_.own_networks.empty()},
                                                  {"--own-address", !typed_.own_address.empty()}};
    for (const auto& [option, is_given] : given)
      if (is_given)
        throw Refused(file_.string() + " exists, and its settings of this site are kept, so " + option +
                      " would have no effect: omit it to add a peer, or edit the file; nothing was written");
  }

  // Handles the line printed by the other site if this site already has a file.
  void add_peer() {
    const auto peer = typed_peer();
    if (!peer)
      throw Refused(file_.string() +
                    " exists and is not overwritten. To add a peer to it, run the command that longhaul "
                    "init printed at the other site");
    refuse_options_of_site();
    (void)config::read(file_);
    std::ifstream stream(file_, std::ios::binary);
    std::stringstream old;
    old << stream.rdbuf();
    std::string text = old.str();
    if (!text.empty() && text.back() != '\n') text += '\n';
    text += peer_text(*peer);
    (void)config::read_text(text, file_);
    replace(text);
    out_ << "Added the peer \"" << peer->name << "\" to " << file_.string()
         << ". If the daemon is running: longhaul reload.\n\n";
    say_needs();
  }

  std::string asked_own_address() {
    const auto own = net::source_towards(kSomewhere);
    const std::string text =
        ask(typed_.own_address, "--own-address", "Address of this host that the other site connects to", own ? own->to_string() : "");
    const auto address = config::parse_address(text);
    if (address && net::interface_with(interfaces_, *address) == nullptr)
      errors_ << wrapped("Note: " + text +
                         " is not an address of this host; this is correct if a router translates it (NAT).");
    if (!address && text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-") != std::string::npos)
      throw Refused("--own-address \"" + text + "\" is neither an address nor a name; nothing was written");
    return address && address->is_v6() ? "[" + text + "]" : text;
  }

  void make_folder() const {
    std::error_code error;
    fs::create_directories(folder_, error);
    if (error) throw Refused("the directory " + folder_.string() + " cannot be created: " + error.message());
  }

  // Reuses the key of an earlier attempt.
  identity::Made key_of(const std::string& site) const {
    identity::Made made{folder_ / (site + ".crt"), folder_ / (site + ".key"), ""};
    if (!fs::exists(made.private_key)) return identity::keygen(site, folder_);
    made.fingerprint = identity::load(config::Identity{made.certificate, made.private_key}).fingerprint;
    return made;
  }

  static void write(const fs::path& file, const std::string& text) {
    const int descriptor = ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    const bool written = descriptor >= 0 && ::fchmod(descriptor, 0644) == 0 &&
                         ::write(descriptor, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
                         ::fsync(descriptor) == 0;
    const int error = errno;
    if (descriptor >= 0) ::close(descriptor);
    if (!written) throw Refused(file.string() + " cannot be written: " + std::strerror(error));
  }

  void replace(const std::string& text) const {
    const fs::path other = file_.string() + ".new";
    ::unlink(other.c_str());
    write(other, text);
    if (::rename(other.c_str(), file_.c_str()) != 0)
      throw Refused(file_.string() + " cannot be replaced: " + std::strerror(errno));
  }

  void say_needs() {
    const config::Config config = config::read(file_);
    HostNeeds needs = needs_before_first_start(config);
    // The first site has no peer until the other site has been set up.
    if (!config.peers.empty())
      for (const std::string& warning : config::warnings(config)) needs.warnings.push_back(warning);
    if (const std::string doubt = doubt_about_interfaces(config); !doubt.empty()) needs.warnings.push_back(doubt);
    out_ << wrapped_lines(to_text(needs));
    if (needs.errors.empty() && needs.warnings.empty())
      out_ << "This host meets the needs of the configuration.\n";
    out_ << "Nothing else on this host was changed.\n\nThen: longhaul check " << file_.string()
         << "\n      systemctl start longhaul    (or: longhaul run " << file_.string() << ")\n";
  }

  const InitTyped& typed_;
  std::istream& in_;
  std::ostream& out_;
  std::ostream& errors_;
  fs::path folder_, file_;
  const std::vector<net::Interface> interfaces_;
};

}  // namespace

void add_init_command(CLI::App& app, std::istream& in, std::ostream& out, std::ostream& errors, int& exit_code) {
  CLI::App* command = app.add_subcommand("init",
                                         "Create this site's key and configuration, and print the command "
                                         "for the other site; asks for missing values");
  const auto typed = std::make_shared<InitTyped>();
  command->add_option("--site", typed->site, "the name of this site")->type_name("NAME");
  command->add_option("--role", typed->role, "branch: connects to the other site; datacenter: the other site connects to it")
      ->check(CLI::IsMember({"branch", "datacenter"}))
      ->type_name("");
  command->add_option("--interface", typed->interface, "the interface towards the clients")->type_name("NAME");
  command->add_option("--own-networks", typed->own_networks, "the networks of this site (default: those of the interface)")
      ->delimiter(',')
      ->type_name("NETWORK");
  command->add_option("--own-address", typed->own_address, "datacenter: the address of this host that the other site connects to")
      ->type_name("ADDRESS");
  command->add_option("--peer", typed->peer, "the name of the other site, if it has been set up already")
      ->type_name("NAME");
  command->add_option("--address", typed->address, "the peer's address (default port: 7600)")
      ->type_name("ADDRESS[:PORT]");
  command->add_option("--fingerprint", typed->fingerprint, "the peer's fingerprint")->type_name("sha256:HEX");
  command->add_option("--networks", typed->networks, "the networks of the peer's site")
      ->delimiter(',')
      ->type_name("NETWORK");
  command->add_option("--dir", typed->folder, "the directory to write to (default: /etc/longhaul for root, else this one)")
      ->type_name("DIR");
  command->callback([typed, &in, &out, &errors, &exit_code] {
    try {
      Initialiser(*typed, in, out, errors).run();
    } catch (const Refused& error) {
      errors << "longhaul: " << error.what() << ".\n";
      exit_code = kBadUsage;
    } catch (const identity::KeygenError& error) {
      errors << error.what() << '\n';
      exit_code = kFailed;
    }
  });
}

}  // namespace longhaul::cli
