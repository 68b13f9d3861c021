// SPDX-License-Identifier: Apache-2.0
// Each condition of an early answer, one by one.
#include "proxy/modules/smb/smb2/may_be_promised.h"

#include <catch2/catch.hpp>
#include <functional>

using namespace longhaul;
using namespace longhaul::smb;
using namespace longhaul::smb::smb2;

namespace {

const Buffer kPromisedData(100'000);

struct Promisable {
  Files files;
  Open open;
  Tree tree;
  Header header;
  WriteRequest request;
  Negotiated negotiated;

  Promisable() {
    open.group = files.group_of({.path = u"NAME"});
    open.caching = lease_state::read | lease_state::write;
    open.disk_file = true;
    open.access = access::write_data;
    header.credit_charge = 2;
    request.data = kPromisedData;
    NegotiateResponse chosen;
    chosen.dialect = Dialect::smb_3_0;
    chosen.capabilities = capabilities::large_mtu;
    chosen.max_read_bytes = chosen.max_write_bytes = chosen.max_transact_bytes = 1 << 20;
    negotiated.chosen(chosen);
  }
  bool may() const { return may_be_promised(open, tree, header, request, negotiated); }
};

}  // namespace

TEST_CASE("an ordinary WRITE under a write-caching oplock may be promised") { CHECK(Promisable().may()); }

TEST_CASE("one condition that is not met prevents a promise") {
  using Change = std::function<void(Promisable&)>;
  const std::vector<Change> changes = {
      [](Promisable& write) { write.open.caching = lease_state::read; },
      [](Promisable& write) { write.open.break_pending = true; },
      [](Promisable& write) { write.open.settled = true; },
      [](Promisable& write) { write.open.durable = true; },
      [](Promisable& write) { write.open.disk_file = false; },
      [](Promisable& write) { write.open.directory = true; },
      [](Promisable& write) { write.open.unnamed = true; },
      [](Promisable& write) { write.open.closing = true; },
      [](Promisable& write) { write.open.reconnected = true; },
      [](Promisable& write) { write.open.replayed = true; },
      [](Promisable& write) { write.open.locked = true; },
      [](Promisable& write) { write.open.group->add(&FileCounts::locks); },
      [](Promisable& write) { write.open.access = access::append_data; },
      [](Promisable& write) { write.open.options = create_options::write_through; },
      [](Promisable& write) { write.open.options = create_options::no_intermediate_buffering; },
      [](Promisable& write) { write.tree.type = ShareType::pipe; },
      [](Promisable& write) { write.tree.capabilities = share_capabilities::continuous_availability; },
      [](Promisable& write) { write.header.flags = header_flags::is_signed; },
      [](Promisable& write) { write.header.flags = header_flags::async; },
      [](Promisable& write) { write.header.flags = header_flags::related; },
      [](Promisable& write) { write.header.flags = header_flags::replay; },
      [](Promisable& write) { write.header.channel_sequence = 1; },
      [](Promisable& write) { write.header.credit_charge = 1; },
      [](Promisable& write) { write.request.channel = 1; },
      [](Promisable& write) { write.request.flags = 1; },
      [](Promisable& write) { write.request.data = {}; },
      [](Promisable& write) { write.request.offset = ~std::uint64_t{0} - 10; },
      [](Promisable& write) { write.negotiated = {}; },  // no large requests
  };
  for (std::size_t i = 0; i < changes.size(); ++i) {
    CAPTURE(i);
    Promisable write;
    changes[i](write);
    CHECK_FALSE(write.may());
  }
}

TEST_CASE("a WRITE of more than the server accepts may not be promised") {
  Promisable write;
  NegotiateResponse chosen;
  chosen.dialect = Dialect::smb_3_0;
  chosen.capabilities = capabilities::large_mtu;
  chosen.max_write_bytes = 99'999;
  write.negotiated.chosen(chosen);
  CHECK_FALSE(write.may());
  write.request.data = as_bytes("short");
  CHECK(write.may());
}
