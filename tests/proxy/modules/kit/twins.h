// SPDX-License-Identifier: Apache-2.0
// Both halves of any module between a client and a server that a test plays, in memory. Bytes and messages wait in
// queues; which moves next, and where bytes are cut, follows from a seed, which replays a failure. So each direction is
// delayed against the other, and the client and server against both.
#pragma once
#include <algorithm>
#include <functional>
#include <random>
#include <string>
#include <string_view>

#include "proxy/modules/plaintext.h"
#include "tests/proxy/modules/kit/watched.h"

namespace longhaul::kit {

inline Slice slice_of(std::string_view text) { return Slice::copy_of(std::as_bytes(std::span(text))); }

class Twins {
 public:
  // Features as the module's defaults have them.
  // `secrets`: of Descriptor::servers.
  Twins(const modules::Descriptor& descriptor, unsigned seed, std::shared_ptr<const modules::Secrets> secrets = nullptr)
      : Twins(descriptor, seed, config::FeatureTable{descriptor.features}, std::move(secrets), {}) {}
  // Another connection of the same two daemons: `instance` is both.
  Twins(const modules::Descriptor& descriptor, unsigned seed, std::shared_ptr<modules::Instance> instance,
        const modules::Ends& ends = {})
      : random(seed), table_{descriptor.features}, instance_(std::move(instance)), ends_(ends) {
    begin();
  }
  // With `reader` on what the module decrypts; `instance` is the reader's.
  Twins(const modules::Descriptor& descriptor, unsigned seed, std::shared_ptr<const modules::Secrets> secrets,
        const modules::Descriptor& reader, std::shared_ptr<modules::Instance> instance)
      : Twins(descriptor, seed, table_of(descriptor, reader), std::move(secrets),
              {{.recognise = reader.recognise, .may_be_server = reader.may_be_server, .instance = std::move(instance)}}) {}

  // ---- the client and the server
  void client_sends(std::string_view text) { from_client_ += text; }
  void server_sends(std::string_view text) { from_server_ += text; }
  void client_ends() { client_ends_ = true; }
  void server_ends() { server_ends_ = true; }
  std::string at_client, at_server;                    // what came to them so far
  std::function<void()> on_client_bytes = [] {}, on_server_bytes = [] {};
  // The connection to the server is a new one; what the old one said is gone.
  std::function<void()> on_redial = [] {};
  bool line_is_up = true;  // otherwise nothing crosses
  bool is_reset() const { return near.aborted || far.aborted; }

  // One thing that can happen. False: nothing can.
  bool step() {
    now += std::chrono::milliseconds(random() % 3);
    const auto first = static_cast<unsigned>(random() % kKinds);
    for (unsigned i = 0; i < kKinds; ++i)
      if (happens((first + i) % kKinds)) return redial(), true;
    return false;
  }
  void run() {
    redial();  // if the test itself called a half
    for (int i = 0; i < 1'000'000 && !is_reset() && step(); ++i) {
    }
  }

  std::mt19937 random;
  link::TimePoint now{std::chrono::hours(1)};

 private:
  static constexpr unsigned kKinds = 6;

  Twins(const modules::Descriptor& descriptor, unsigned seed, config::FeatureTable table,
        std::shared_ptr<const modules::Secrets> secrets, const modules::PlaintextReaders& readers)
      : random(seed),
        table_(std::move(table)),
        instance_(descriptor.make({.ahead_bytes = 1 << 20, .daemon_number = 1})),
        secrets_((instance_->use_plaintext_readers(readers), secrets ? instance_->use_secrets(secrets) : void(), secrets)) {
    begin();
  }

  void begin() {
    modules::Surroundings told{.line_bytes_per_second = 1'000'000,
                               .round_trip = std::chrono::milliseconds(100),
                               .stream_room = 1 << 20};
    told.features.modules = config::ModuleFeatures::standard(table_);
    for (Watched* half : {&near, &far}) half->module.on_surroundings(now, told), half->collect();
  }

  static config::FeatureTable table_of(const modules::Descriptor& one, const modules::Descriptor& other) {
    config::FeatureTable table{one.features};
    table.add(other.features);
    return table;
  }

  bool happens(unsigned kind) {
    switch (kind) {
      case 0:
        return sends(near, from_client_, client_ends_);
      case 1:
        return sends(far, from_server_, server_ends_);
      case 2:
        return line_is_up && delivers(near, far);
      case 3:
        return line_is_up && delivers(far, near);
      case 4:
        return arrives(near, at_client, on_client_bytes);
      default:
        return arrives(far, at_server, on_server_bytes);
    }
  }
  void redial() {
    if (!std::exchange(far.redialled, false)) return;
    from_server_.clear(), at_server.clear();
    server_ends_ = false;
    on_redial();
  }
  // Mostly whole.
  std::size_t piece() { return random() % 4 == 0 ? 1 + random() % 40 : ~std::size_t{0}; }
  bool sends(Watched& half, std::string& text, bool ends) {
    if (text.empty()) {
      if (!ends || half.lan_input_ended || half.done()) return false;
      half.end(now);
      return true;
    }
    const std::size_t size = std::min(text.size(), piece());
    half.from_lan(now, slice_of(std::string_view(text).substr(0, size)));
    text.erase(0, size);
    return true;
  }
  bool delivers(Watched& from, Watched& to) {
    if (!deliver(from, to, now, piece())) return false;
    if (!from.aborted) from.module.on_room(now, {.lan = from.to_lan.empty(), .stream = from.to_twin.empty()}), from.collect();
    return true;
  }
  bool arrives(Watched& half, std::string& at, const std::function<void()>& tell) {
    if (half.to_lan.empty()) return false;
    const Bytes bytes = half.to_lan.front().bytes();
    at.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    half.to_lan.pop_front();
    if (!half.aborted) half.module.on_room(now, {.lan = half.to_lan.empty(), .stream = half.to_twin.empty()}), half.collect();
    tell();
    return true;
  }

  const config::FeatureTable table_;
  std::shared_ptr<modules::Instance> instance_;
  std::shared_ptr<const modules::Secrets> secrets_;  // in use before the halves are made
  modules::Ends ends_;
  std::string from_client_, from_server_;
  bool client_ends_ = false, server_ends_ = false;

 public:
  Watched near{instance_->make_near(ends_)}, far{instance_->make_far(ends_, ends_.server)};
};

}  // namespace longhaul::kit
