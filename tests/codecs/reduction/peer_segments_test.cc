// SPDX-License-Identifier: Apache-2.0
// One site with several peers and one store: what the link of one peer has stored is that peer's, and another
// peer's only where the operator says so.
#include "codecs/reduction/peer_segments.h"

#include "tests/codecs/reduction/disk_sites.h"

namespace longhaul::reduction {
namespace {

SiteId site(int number) {
  SiteId id;
  id.fill(std::byte(number));
  return id;
}

constexpr int kHub = 1, kBranch = 2, kOther = 3;

// Stores of three sites; the hub has a link to each of the others.
struct Company {
  cache::MemoryStore stores[4];
  std::uint64_t epoch = 100;
  bool shared = false;

  Options options(int own, int peer) {
    Options made = ring_of(16, ++epoch);
    made.store = &stores[own];
    made.site = site(own);
    made.twin_site = site(peer);
    if (own == kHub && shared) made.rights.shared = {site(peer == kBranch ? kOther : kBranch)};
    return made;
  }
  std::unique_ptr<Twins> session(int peer) {
    auto twins = std::make_unique<Twins>(epoch, options(kHub, peer), options(peer, kHub));
    twins->meet();
    return twins;
  }
  void send_to(int peer, const std::string& file) {
    auto twins = session(peer);
    send(*twins, 0, kStream, file);
    twins->rest();
  }
  // A copy of the branch's disk is carried to the other one.
  void copy_disk() {
    struct Copier final : SegmentListener {
      std::map<LoadId, SegmentName> asked;
      cache::MemoryStore* to = nullptr;
      void on_stored(const SegmentName&) override {}
      void on_dropped(const SegmentName&) override {}
      void on_loaded(LoadId load, std::optional<Slice> bytes) override {
        REQUIRE(bytes);
        Buffer padded(bytes->bytes().begin(), bytes->bytes().end());
        padded.resize(padded.size() + dedup::kOverread);
        std::vector<Hook> hooks;
        find_hooks(Bytes(padded).first(bytes->size()), hooks);
        to->put(asked.at(load), {*bytes}, std::move(hooks));
      }
    } copier;
    copier.to = &stores[kOther];
    stores[kBranch].attach(copier);
    for (const SegmentName& name : stores[kBranch].list())
      copier.asked[stores[kBranch].load(name, 0, name.length, copier)] = name;
    stores[kBranch].settle();
    stores[kBranch].detach(copier);
    stores[kOther].settle();
    REQUIRE(stores[kOther].list() == stores[kBranch].list());
  }
};

std::vector<Buffer> said_by(Reduction& side, std::uint8_t type) {
  std::vector<Buffer> said;
  while (auto message = side.poll_message())
    if (message->bytes()[0] == std::byte{type})
      said.emplace_back(message->bytes().begin(), message->bytes().end());
  return said;
}

bool says(Reduction& side, std::initializer_list<int> bytes) {
  Buffer message;
  for (int byte : bytes) message.push_back(std::byte(byte));
  return side.on_message(message).has_value();
}

TEST_CASE("a peer is told about the segments of its own link only") {
  Company company;
  Traffic traffic(1);
  company.send_to(kBranch, traffic.noise(6 << 20));
  const auto stored = company.stores[kHub].list();
  REQUIRE(stored.size() >= 2);
  Reduction to_branch(company.options(kHub, kBranch)), to_other(company.options(kHub, kOther));
  const auto ids = [](const std::vector<Buffer>& messages) {
    std::size_t count = 0;
    for (const Buffer& message : messages) count += (message.size() - 1) / 8;
    return count;
  };
  CHECK(ids(said_by(to_branch, 9)) == stored.size());
  const auto greeting = said_by(to_other, 9);
  CHECK(greeting.size() == 1);
  CHECK(ids(greeting) == 0);
  // What is stored while the session lives neither, nor what goes.
  company.send_to(kBranch, traffic.noise(3 << 20));
  CHECK_FALSE(said_by(to_branch, 9).empty());
  CHECK(said_by(to_other, 9).empty());
  company.stores[kHub].drop(stored[0]);
  CHECK_FALSE(said_by(to_branch, 10).empty());
  CHECK(said_by(to_other, 10).empty());
}

TEST_CASE("a copy of another peer's disk gives access only within a shared group") {
  Company company;
  company.shared = GENERATE(false, true);
  Traffic traffic(2);
  const std::string file = traffic.noise(8 << 20);
  company.send_to(kBranch, file);
  company.copy_disk();
  const int from = GENERATE(0, 1);
  auto twins = company.session(kOther);
  send(*twins, from, kStream, file);
  twins->rest();
  CHECK(twins->delivered_bytes(from) == file.size());
  if (company.shared) {
    CHECK(twins->wire_bytes(from) < file.size() / 20);
  } else {
    CHECK(twins->wire_bytes(from) > file.size());
    CHECK(twins->side(0).counters().encoder.loaded_bytes == 0);
    CHECK(twins->side(0).counters().decoder.loaded_bytes == 0);
  }
}

TEST_CASE("rights withdrawn during a session take effect at once, and can be granted again") {
  Company company;
  company.shared = true;
  Traffic traffic(6);
  const std::string file = traffic.noise(8 << 20);
  company.send_to(kBranch, file);
  company.copy_disk();
  auto twins = company.session(kOther);
  REQUIRE(twins->side(1).counters().common_segments > 0);
  twins->side(0).set_rights({});
  twins->settle();
  CHECK(twins->side(0).counters().common_segments == 0);
  CHECK(twins->side(1).counters().common_segments == 0);
  twins->side(0).set_rights({.own = {}, .shared = {site(kBranch)}});
  twins->settle();
  send(*twins, 0, kStream, file);
  CHECK(twins->wire_bytes(0) < file.size() / 20);
}

TEST_CASE("a peer that forgets segments removes only its own, even within a group") {
  Company company;
  company.shared = GENERATE(false, true);
  Traffic traffic(3);
  company.send_to(kBranch, traffic.noise(6 << 20));
  const auto branches = company.stores[kHub].list();
  company.send_to(kOther, traffic.noise(6 << 20));
  REQUIRE(company.stores[kHub].list().size() > branches.size());
  Reduction hub(company.options(kHub, kOther));
  (void)said_by(hub, 0);
  CHECK(says(hub, {9}));
  CHECK(says(hub, {15}));
  while (hub.has_work()) hub.work();
  CHECK(said_by(hub, 16).size() == 1);
  CHECK(company.stores[kHub].list() == branches);
}

TEST_CASE("a peer with two keys reads what was stored under either") {
  Company company;
  Traffic traffic(4);
  const std::string file = traffic.noise(6 << 20);
  company.send_to(kBranch, file);
  company.copy_disk();
  Options hub = company.options(kHub, kOther);
  hub.rights.own = {site(kBranch)};
  Twins twins(4, hub, company.options(kOther, kHub));
  twins.meet();
  send(twins, 0, kStream, file);
  CHECK(twins.wire_bytes(0) < file.size() / 20);
}

TEST_CASE("a site that is listed as its own peer gets no additional rights") {
  cache::MemoryStore store;
  struct Deaf final : SegmentListener {
    void on_stored(const SegmentName&) override {}
    void on_dropped(const SegmentName&) override {}
    void on_loaded(LoadId, std::optional<Slice>) override {}
  } listener;
  PeerSegments segments(store, site(kHub), {.own = {site(kOther), site(kHub)}, .shared = {site(kHub)}},
                        listener);
  CHECK_FALSE(segments.may_read({.writer = site(kHub), .reader = site(kBranch)}));
  CHECK(segments.may_read({.writer = site(kHub), .reader = site(kOther)}));
  CHECK(segments.may_read({.writer = site(kOther), .reader = site(kHub)}));
}

}  // namespace
}  // namespace longhaul::reduction
