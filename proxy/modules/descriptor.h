// SPDX-License-Identifier: Apache-2.0
// All that the program knows of a module: a table of constants in the module's folder, and an object that
// makes its halves. modules.cc lists the descriptors; nothing else outside a module's folder names it.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/modules/journal.h"
#include "proxy/modules/losses.h"
#include "proxy/modules/memory.h"
#include "proxy/modules/module.h"
#include "proxy/modules/objects.h"
#include "proxy/modules/secrets.h"
#include "proxy/modules/state.h"

namespace longhaul::modules {

struct PlaintextReader;
struct ConnectAhead;

// What a daemon has of one module: what its flows share lives as long as this.
class Instance {
 public:
  virtual ~Instance() = default;
  virtual std::unique_ptr<Module> make_near(const Ends& ends) = 0;  // before the client
  // Before the server. `dialled`: its address, also where `ends` has only a digest of its name.
  virtual std::unique_ptr<Module> make_far(const Ends& ends, const Address& dialled) = 0;
  // Before the client of a connection that another module decrypts (plaintext.h). It sends no messages. `verified_name` is
  // the server's, by its certificate. Null: this module needs its twin.
  virtual std::unique_ptr<Module> make_plaintext_reader(const Ends&, std::string_view /*verified_name*/) {
    return nullptr;
  }
  // The far half for the same connection. Its messages go to the half of make_plaintext_reader(). It must not output Redial or
  // StepAside. `protocol`: negotiated by client and server (ALPN). Null: there is no far half.
  virtual std::unique_ptr<Module> make_plaintext_far(const Ends&, std::string_view /*verified_name*/,
                                                     std::string_view /*protocol*/, const config::ModuleFeatures&) {
    return nullptr;
  }
  // Once, before the first flow: the modules that read what this one decrypts.
  virtual void use_plaintext_readers(const std::vector<PlaintextReader>&) {}
  // Of data read ahead of client requests; what the halves count themselves is not among it.
  virtual std::uint64_t ahead_bytes() const { return 0; }
  // Forgets what it has stored for clients to ask for again: how many bytes.
  virtual std::uint64_t clear_cache() { return 0; }
  // A link was lost, or features were switched: what other sites have handed over for connections to come is not valid.
  virtual void forget_sessions() {}
  virtual Losses* losses() { return nullptr; }  // null: it promises nothing
  virtual State* state() {
    return nullptr;
  }  // null: it remembers nothing; otherwise Descriptor::state says where
  virtual Journal* journal() { return nullptr; }  // the same; Descriptor::journal
  // What Descriptor::servers read, at the start and after each reload; null: there is no such table. Flows that
  // have begun with earlier secrets may keep them.
  virtual void use_secrets(std::shared_ptr<const Secrets>) {}
};

struct Resources {
  std::uint64_t ahead_bytes;    // what may be held for clients before they ask
  std::uint64_t cache_bytes = 1 << 20;  // of what they asked for before
  std::uint64_t daemon_number;  // of this daemon from its start to its end, and of no other
  // The peer whose client that is; empty: this site's.
  std::function<std::string(const Address& client)> owner_of = [](const Address&) { return std::string(); };
  std::function<std::int64_t()> wall_seconds = [] { return std::int64_t{0}; };  // since 1970, by this host's clock
  std::function<TimePoint()> now = [] { return TimePoint{}; };                  // by the loop's clock
  Objects* objects = nullptr;  // on disk, until the instance ends; null: there are none
  // Of all modules, for what belongs to no flow; null: it is not counted.
  std::shared_ptr<Memory> memory{};
};

// What the first bytes of a client say.
enum class Recognised : std::uint8_t { no, yes, too_few };
inline constexpr std::size_t kMostFirstBytes = 256;

struct Descriptor {
  std::string_view name;      // in OPEN, HELLO, views and metrics; at most 32 bytes
  std::uint64_t version = 1;  // of the messages between the halves; another version is another module
  std::span<const std::uint16_t> ports;  // of servers, unless the configuration names others
  // At other ports, where the configuration wants that: whether a connection that begins so is the module's.
  // Looks at no more than kMostFirstBytes. Null: it is known by its ports alone.
  Recognised (*recognise)(Bytes first) = nullptr;
  // Whether a server that speaks before its client may be the module's: its bytes then wait for the client's, for a second.
  // Null: no such server is.
  bool (*may_be_server)(Bytes first) = nullptr;
  // Connections to its servers may be made before their clients ask (connect_ahead.h). Null: never.
  const ConnectAhead* connect_ahead = nullptr;
  bool decrypts = false;         // its instance is told who reads_plaintext
  bool reads_plaintext = false;  // it has make_plaintext_reader(), and `recognise`
  std::span<const config::ModuleFeature> features;  // the first has the module's name and switches it
  std::span<const ReasonText* const> reasons;  // in the order of the documentation
  StateFile state{}, journal{};
  ServerTable servers{};  // the tables [[NAME_server]]; without a name there are none
  std::unique_ptr<Instance> (*make)(const Resources& resources) = nullptr;
};

}  // namespace longhaul::modules
