// SPDX-License-Identifier: Apache-2.0
// Describes a module to the program: a table of constants in the module's folder, and an object that creates
// its halves. list.cc lists the descriptors; nothing else outside a module's folder names it.
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

// A daemon's instance of one module, with the state that the module's flows share.
class Instance {
 public:
  virtual ~Instance() = default;
  virtual std::unique_ptr<Module> make_near(const Ends& ends) = 0;  // on the client's side
  // On the server's side. `dialled`: its address, even if `ends` has only a digest of its name.
  virtual std::unique_ptr<Module> make_far(const Ends& ends, const Address& dialled) = 0;
  // The near half for a connection that another module decrypts (plaintext.h). It sends no messages.
  // `verified_name`: the server's name in its certificate. Null if this module needs its twin.
  virtual std::unique_ptr<Module> make_plaintext_reader(const Ends&, std::string_view /*verified_name*/) {
    return nullptr;
  }
  // The far half for the same connection. Its messages are passed to the half of make_plaintext_reader(). It
  // must not output Redial or StepAside. `protocol`: negotiated by client and server (ALPN). Null if there is
  // no far half.
  virtual std::unique_ptr<Module> make_plaintext_far(const Ends&, std::string_view /*verified_name*/,
                                                     std::string_view /*protocol*/, const config::ModuleFeatures&) {
    return nullptr;
  }
  // Called once, before the first flow: the modules that read the plaintext of this module.
  virtual void use_plaintext_readers(const std::vector<PlaintextReader>&) {}
  // Memory of data read ahead of client requests, without memory that the halves report themselves.
  virtual std::uint64_t ahead_bytes() const { return 0; }
  // Drops the responses stored for repeated requests; returns their bytes.
  virtual std::uint64_t clear_cache() { return 0; }
  // A link was lost, or features were switched: data from other sites for future connections is no longer
  // valid.
  virtual void forget_sessions() {}
  virtual Losses* losses() { return nullptr; }  // null if it makes no promises
  virtual State* state() {
    return nullptr;
  }  // null if it has no state to store; otherwise Descriptor::state names the file
  virtual Journal* journal() { return nullptr; }  // the same, with Descriptor::journal
  // The secrets that Descriptor::servers read, at the start and after each reload; null if there is no such
  // table. Flows that began with earlier secrets may keep them.
  virtual void use_secrets(std::shared_ptr<const Secrets>) {}
};

struct Resources {
  std::uint64_t ahead_bytes;    // limit of data held before clients request it
  std::uint64_t cache_bytes = 1 << 20;  // limit of data that clients have requested before
  std::uint64_t daemon_number;  // unique to this run of the daemon
  // The peer to which the client belongs; empty for this site.
  std::function<std::string(const Address& client)> owner_of = [](const Address&) { return std::string(); };
  std::function<std::int64_t()> wall_seconds = [] { return std::int64_t{0}; };  // since 1970, by this host
  std::function<TimePoint()> now = [] { return TimePoint{}; };                  // by the event loop's clock
  Objects* objects = nullptr;  // on disk, outlives the instance; null if there are none
  // The memory of all modules, for data that belongs to no flow; null if that is not counted.
  std::shared_ptr<Memory> memory{};
};

// Whether a client's first bytes belong to the module's protocol.
enum class Recognised : std::uint8_t { no, yes, too_few };
inline constexpr std::size_t kMostFirstBytes = 256;

struct Descriptor {
  std::string_view name;      // in OPEN, HELLO, views and metrics; at most 32 bytes
  std::uint64_t version = 1;  // of the messages between the halves; other versions are other modules
  std::span<const std::uint16_t> ports;  // of servers, unless configured otherwise
  // For other ports, if configured: whether a connection with these first bytes belongs to the module.
  // Examines at most kMostFirstBytes. Null if the module is only recognised by its ports.
  Recognised (*recognise)(Bytes first) = nullptr;
  // Whether a server that sends before its client may belong to the module: then its bytes wait for the
  // client's, for a second. Null if no such server does.
  bool (*may_be_server)(Bytes first) = nullptr;
  // If not null, connections to its servers may be made before their clients need them (connect_ahead.h).
  const ConnectAhead* connect_ahead = nullptr;
  bool decrypts = false;         // its instance receives the modules with reads_plaintext
  bool reads_plaintext = false;  // it has make_plaintext_reader() and `recognise`
  std::span<const config::ModuleFeature> features;  // the first one has the module's name and switches it
  std::span<const ReasonText* const> reasons;  // in the order of the documentation
  StateFile state{}, journal{};
  ServerTable servers{};  // the tables [[NAME_server]]; without a name if there are none
  std::unique_ptr<Instance> (*make)(const Resources& resources) = nullptr;
};

}  // namespace longhaul::modules
