// SPDX-License-Identifier: Apache-2.0
// One function per table of the file, called in an order that lets each one check its dependencies on the
// others. section.cc handles types, unknown keys and the form of messages.
#include "proxy/config/read.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>

#include "proxy/config/daemon_tables.h"
#include "proxy/config/exports.h"
#include "proxy/config/identity_files.h"
#include "proxy/config/listens.h"
#include "proxy/config/module_tables.h"
#include "proxy/config/peer_conflicts.h"
#include "proxy/config/peer_paths.h"
#include "proxy/config/plain_ascii.h"
#include "proxy/config/section.h"
#include "proxy/config/values.h"
#include "proxy/modules/modules.h"

namespace longhaul::config {
namespace {

constexpr std::array<std::string_view, 16> kTopKeys{
    "site",     "state_dir", "identity",   "link",    "peer",   "intercept", "forward", "socks",
    "features", "rule",      "dictionary", "control", "export", "limits",    "process", "log"};

constexpr std::size_t kMostFileBytes = 1 << 20;

std::vector<std::string_view> top_keys() {
  std::vector<std::string_view> keys = module_tables();
  keys.insert(keys.begin(), kTopKeys.begin(), kTopKeys.end());
  return keys;
}

class Reader {
 public:
  Reader(std::string_view text, const std::filesystem::path& file, Files files)
      : name_(file.string()), folder_(file.parent_path()), files_(files) {
    config_.file = file;
    config_.features = standard_features(modules::feature_table());
    const toml::table document = parse(text);
    const std::vector<std::string_view> keys = top_keys();
    const Section top(name_, "", document, keys);
    read_top(top);
    read_control(top);
    read_link(top);
    read_peers(top);
    read_intercept(top);
    read_forwards(top);
    read_socks(top);
    read_features(top);
    config_.modules = read_modules(top);
    config_.servers = read_servers(top, config_.link.allow, folder_);
    read_rules(top);
    read_dictionary(top);
    config_.exports = read_export(top, folder_);
    config_.limits = read_limits(top);
    config_.process = read_process(top);
    config_.log = read_log(top);
    read_identity(top);
  }

  Config take() { return std::move(config_); }

 private:
  toml::table parse(std::string_view text) const {
    const PlainAscii plain = plain_ascii(text);
    if (plain.foreign_line != 0)
      fail_at(name_, plain.foreign_line,
              "this character is not UTF-8, or neither in double quotes nor in a comment; use plain quotes: "
              "\"...\".");
    try {
      return toml::parse(plain.text, std::string_view(name_));
    } catch (const toml::parse_error& error) {
      std::string reason(error.description());
      std::replace(reason.begin(), reason.end(), '\n', ' ');
      const auto line = error.source().begin.line;
      const std::string slip = slip_in_line(text, line);
      fail_at(name_, line, "this is not valid TOML:" + (slip.empty() ? " " + reason + "." : slip));
    }
  }

  std::filesystem::path beside_file(const std::string& typed) const {
    const std::filesystem::path path(typed);
    return path.is_absolute() ? path : folder_ / path;
  }

  std::optional<HostPort> listen(const Section& section, std::string_view title, std::string_view example) {
    const auto typed = section.text("listen", example);
    if (!typed) return std::nullopt;
    HostPort at = host_port(section, "listen", *typed, HostKind::address);
    listens_.add(section, {at, std::string(title) + " listen", typed->line});
    return at;
  }

  static std::optional<Fail> fail_policy(const Section& section) {
    return section.choice<Fail>("fail", {{"open", Fail::open}, {"closed", Fail::closed}});
  }

  void read_top(const Section& top) {
    config_.site = name_value(top, "site", "branch");
    if (const auto folder = top.text("state_dir", "/var/lib/longhaul"))
      config_.state_dir = beside_file(folder->value);
  }

  void read_link(const Section& top) {
    static constexpr std::array<std::string_view, 5> kKeys{"listen", "allow", "total_rate",
                                                           "congestion_control", "key_log"};
    const auto section = top.table("link", kKeys);
    if (!section) return;
    config_.link.listen = listen(*section, "[link]", "0.0.0.0:7600");
    config_.link.allow = networks(*section, "allow");
    config_.link.total_rate_bits = rate(*section, "total_rate");
    if (auto name = kernel_name(*section, "congestion_control", "bbr"))
      config_.link.congestion_control = *std::move(name);
    // state_dir is private, and the sandbox lets the daemon write to it.
    if (const auto file = section->text("key_log", "link.keys")) {
      const bool is_name =
          !file->value.empty() && file->value.find('/') == std::string::npos && file->value[0] != '.';
      if (!is_name)
        section->fail(file->line, "key_log",
                      "= \"" + file->value +
                          "\" must be the name of a file without a directory: it is put into state_dir, "
                          "which only the daemon's user can read.");
      config_.link.key_log = file->value;
    }
  }

  void read_peers(const Section& top) {
    static constexpr std::array<std::string_view, 11> kKeys{
        "name",     "address", "fingerprint", "preshared_key_file",
        "networks", "names",   "rate",        "dictionary_memory",
        "groups",   "policy",  "path"};
    for (const Section& section : top.tables("peer", kKeys)) {
      Peer peer;
      peer.name = name_value(section, "name", "datacenter");
      if (const auto typed = section.text("address", "10.10.100.2:7600"))
        peer.address = host_port(section, "address", *typed, HostKind::address_or_name);
      const std::vector<Text> keys = fingerprints(section);
      for (const Text& key : keys) peer.fingerprints.push_back(key.value);
      if (const auto file = section.text("preshared_key_file", "datacenter.psk"))
        peer.preshared_key_file = beside_file(file->value);
      peer.networks = networks(section, "networks");
      peer.names = name_patterns(section, "names");
      peer.rate_bits = rate(section, "rate");
      read_paths(section, peer);
      peer.dictionary_memory_bytes =
          size_or_none(section, "dictionary_memory", Dictionary::kMinMemory, Dictionary::kMaxMemory);
      peer.groups = group_names(section, "groups", "branches");
      if (!peer.address && !config_.link.listen)
        section.fail(
            section.line(), "",
            "\"" + peer.name +
                "\" has no address to connect to, and [link] has no listen for it to connect to: set "
                "one of the two.");
      for (const Peer& other : config_.peers) refuse_conflict(section, keys, other, peer);
      config_.peers.push_back(std::move(peer));
    }
  }

  void read_identity(const Section& top) {
    static constexpr std::array<std::string_view, 2> kKeys{"certificate", "private_key"};
    const auto section = top.table("identity", kKeys);
    // Without a peer there is no link, so the daemon has nothing to do.
    if (!section)
      top.fail_plainly(0, "the file needs an [identity] with certificate and private_key; `longhaul keygen " +
                              config_.site + "` creates both.");
    config_.identity.certificate = identity_file(*section, "certificate", ".crt");
    config_.identity.private_key = identity_file(*section, "private_key", ".key");
  }

  std::filesystem::path identity_file(const Section& section, std::string_view key,
                                      std::string_view ending) const {
    const Text typed = section.required_text(key, config_.site + std::string(ending));
    const std::filesystem::path path = beside_file(typed.value);
    if (files_ == Files::ignore) return path;
    if (const std::string problem = problem_of_file(path, config_.site); !problem.empty())
      section.fail(typed.line, key,
                   "= \"" + typed.value + "\": the file " + path.string() + " " + problem + ".");
    return path;
  }

  void read_intercept(const Section& top) {
    static constexpr std::array<std::string_view, 5> kKeys{"mode", "interfaces", "port", "source", "fail"};
    using Mode = Intercept::Mode;
    const auto section = top.table("intercept", kKeys);
    if (!section) return;
    Intercept& intercept = config_.intercept;
    intercept.mode =
        section->choice<Mode>("mode", {{"tproxy", Mode::tproxy}, {"off", Mode::off}}).value_or(Mode::off);
    intercept.interfaces = interfaces(*section, "interfaces");
    if (const auto port = section->integer("port", 1, 65535))
      intercept.port = static_cast<std::uint16_t>(*port);
    intercept.source =
        section
            ->choice<Source>(
                "source", {{"auto", Source::automatic}, {"client", Source::client}, {"proxy", Source::proxy}})
            .value_or(intercept.source);
    intercept.fail = fail_policy(*section).value_or(intercept.fail);
    if (intercept.mode == Mode::off) return;
    if (intercept.interfaces.empty())
      section->fail(section->line(), "mode",
                    "= \"tproxy\" needs interfaces, for example interfaces = [\"lan0\"].");
    // Its listener accepts both families on every address.
    listens_.add(*section, {{"::", intercept.port}, "[intercept] port", section->line()});
  }

  void read_forwards(const Section& top) {
    static constexpr std::array<std::string_view, 2> kKeys{"listen", "to"};
    for (const Section& section : top.tables("forward", kKeys)) {
      (void)section.required_text("listen", "127.0.0.1:8445");
      Forward forward;
      forward.listen = listen(section, "[[forward]]", "127.0.0.1:8445").value();
      const Text typed = section.required_text("to", "10.10.2.2:445");
      forward.to = host_port(section, "to", typed, HostKind::address_or_name);
      if ((forward.to.host == "0.0.0.0" || forward.to.host == "::"))
        section.fail(typed.line, "to", "must name one server, not " + forward.to.host + ".");
      if (forward.to == forward.listen)
        section.fail(typed.line, "to", "is the same as listen: the daemon would connect to itself.");
      config_.forwards.push_back(std::move(forward));
    }
  }

  void read_socks(const Section& top) {
    static constexpr std::array<std::string_view, 1> kKeys{"listen"};
    const auto section = top.table("socks", kKeys);
    if (section) config_.socks.listen = listen(*section, "[socks]", "127.0.0.1:1080");
  }

  void read_control(const Section& top) {
    static constexpr std::array<std::string_view, 5> kKeys{"listen", "token_file", "tls_listen",
                                                           "tls_certificate", "tls_key"};
    const auto section = top.table("control", kKeys);
    const auto at = section ? listen(*section, "[control]", "127.0.0.1:7601") : std::nullopt;
    if (at) {
      if (!parse_address(at->host)->is_loopback())
        section->fail(
            section->text("listen", "")->line, "listen",
            "= \"" + to_text(*at) +
                "\" must be a loopback address, such as 127.0.0.1: flows and counters are not public. "
                "tls_listen is for other machines.");
      config_.control.listen = *at;
    } else {
      listens_.add(top, {config_.control.listen, "the default of [control] listen", 0});
    }
    if (section)
      if (const auto file = section->text("token_file", "control.token"))
        config_.control.token_file = file->value;
    if (section) read_control_tls(*section);
  }

  void read_control_tls(const Section& section) {
    const auto typed = section.text("tls_listen", "10.10.1.1:7602");
    for (const std::string_view key : {"tls_certificate", "tls_key"})
      if (section.has(key) && !typed) section.fail(section.line(), key, "has no effect without tls_listen.");
    if (!typed) return;
    config_.control.tls_listen = host_port(section, "tls_listen", *typed, HostKind::address);
    listens_.add(section, {*config_.control.tls_listen, "[control] tls_listen", typed->line});
    config_.control.tls_certificate =
        beside_file(section.required_text("tls_certificate", "control.crt").value);
    config_.control.tls_key = beside_file(section.required_text("tls_key", "control.key").value);
  }

  void read_features(const Section& top) {
    const auto section = feature_table(top);
    if (!section) return;
    config_.typed_features = features_in(*section, modules::feature_table());
    for (const auto& [feature, value] : config_.typed_features) (void)set_feature(config_.features, feature, value);
  }

  std::optional<Section> feature_table(const Section& in) const {
    return in.table("features", feature_names_, modules_named_);
  }

  void read_rules(const Section& top) {
    static constexpr std::array<std::string_view, 5> kKeys{"to_ports", "to_networks", "from_networks",
                                                           "features", "fail"};
    for (const Section& section : top.tables("rule", kKeys)) {
      Rule rule;
      rule.to_ports = section.ports("to_ports");
      rule.to_networks = networks(section, "to_networks");
      rule.from_networks = networks(section, "from_networks");
      if (const auto features = feature_table(section)) {
        rule.features = features_in(*features, modules::feature_table());
        refuse_carrier(*features);
      }
      rule.fail = fail_policy(section);
      config_.rules.push_back(std::move(rule));
    }
  }

  // All flows of a link share its carrier, so a rule cannot choose one for its flows.
  static void refuse_carrier(const Section& features) {
    const auto transport = features.scalar("transport");
    if (transport && (transport->value == "udp" || transport->value == "tcp"))
      features.fail(transport->line, "transport",
                    "= \"" + transport->value +
                        "\" has no effect in a [[rule]], because all flows to a peer share one "
                        "carrier; set it in [features], or use \"auto\" or \"off\" here.");
  }

  void read_dictionary(const Section& top) {
    static constexpr std::array<std::string_view, 5> kKeys{"memory", "disk", "objects", "directory", "share"};
    const auto section = top.table("dictionary", kKeys);
    if (!section) return;
    Dictionary& dictionary = config_.dictionary;
    dictionary.memory_bytes = size_or_none(*section, "memory", Dictionary::kMinMemory, Dictionary::kMaxMemory)
                                  .value_or(dictionary.memory_bytes);
    dictionary.disk_bytes = size_or_none(*section, "disk", Dictionary::kMinDisk, Dictionary::kMaxDisk)
                                .value_or(dictionary.disk_bytes);
    dictionary.objects_bytes = size_or_none(*section, "objects", Dictionary::kMinObjects, Dictionary::kMaxDisk);
    if (const auto folder = section->text("directory", "dictionary")) {
      dictionary.directory = folder->value;
    }
    dictionary.share = group_names(*section, "share", "branches");
    for (const std::string_view key : {"objects", "directory", "share"})
      if (section->has(key) && dictionary.disk_bytes == 0)
        section->fail(section->line(), key, "has no effect with disk = 0.");
  }

  Config config_;
  std::string name_;
  std::filesystem::path folder_;
  Files files_;
  Listens listens_;
  const std::vector<std::string_view> feature_names_ = feature_names(modules::feature_table());
  const std::string modules_named_ = modules_named(modules::feature_table());
};

}  // namespace

Config read_text(std::string_view text, const std::filesystem::path& file) {
  return Reader(text, file, Files::ignore).take();
}

Config read(const std::filesystem::path& file, Files files) {
  std::ifstream stream(file, std::ios::binary);
  if (std::error_code error; !stream || std::filesystem::is_directory(file, error))
    throw ConfigError(file.string() + ": the configuration cannot be read: " +
                      (stream ? "it is a directory" : std::strerror(errno)) + ".");
  std::string text(kMostFileBytes + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(stream.gcount()));
  if (text.size() > kMostFileBytes)
    throw ConfigError(file.string() +
                      ": the file is larger than 1 MiB, so it is not a longhaul configuration.");
  return Reader(text, file, files).take();
}

}  // namespace longhaul::config
