// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/batch_maker.h"

#include "packet_parts.h"

using namespace longhaul;
using namespace longhaul::link;
using namespace longhaul::link::udp;
using namespace std::chrono_literals;

namespace {

struct BatchParts : PacketParts {
  BatchMaker batches{maker, flight, address, health};
  DatagramBatch batch;

  const DatagramBatch& next(TimePoint now) {
    batch.clear();
    batches.make(batch, now);
    return batch;
  }
};

const UdpAddress kElsewhere{boost::asio::ip::make_address("192.0.2.2"), 4433};

}  // namespace

TEST_CASE(
    "a path is probed with a small packet and then with a large one, and only the large one can open it") {
  BatchParts at;
  at.health.begin_probing(kStart, {});
  CHECK(at.next(kStart).bytes.size() < 100);
  CHECK(at.flight.bytes_against_window() == 0);
  CHECK(at.health.probe_is_due(kStart));
  CHECK(at.next(kStart).bytes.size() == PathMtu::kBase);
  CHECK(at.batch.segments() == 1);
  CHECK(at.batch.to == kPartsPeer);
  CHECK(at.flight.bytes_against_window() > PathMtu::kBase);
  CHECK_FALSE(at.health.probe_is_due(kStart));
  CHECK(at.next(kStart).bytes.empty());  // no data before the path is up
}

TEST_CASE("an answer about addresses goes before all else, and to the address that asked") {
  BatchParts at;
  at.health.begin_probing(kStart, {});
  at.address.on_challenge({}, kElsewhere);
  CHECK(at.next(kStart).to == kElsewhere);
  CHECK(at.batch.segments() == 1);
  CHECK(at.health.probe_is_due(kStart));
  CHECK(at.next(kStart).to == kPartsPeer);
}

TEST_CASE("a path that is up carries what the session says, and larger sizes are tried meanwhile") {
  BatchParts at;
  at.come_up();
  bool probed = false, said = false;
  for (int i = 0; i < 10 && !at.next(kStart).bytes.empty(); ++i) {
    CHECK(at.batch.to == kPartsPeer);
    CHECK(at.batch.segments() == 1);
    (at.batch.bytes.size() > at.flight.mtu().current() ? probed : said) = true;
  }
  CHECK(at.batch.bytes.empty());
  CHECK(probed);
  CHECK(said);
}
