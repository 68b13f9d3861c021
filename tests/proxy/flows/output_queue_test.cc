// SPDX-License-Identifier: Apache-2.0
#include "proxy/flows/output_queue.h"

#include "hosted_flow.h"
#include "proxy/modules/twin_records.h"

using namespace longhaul;
using namespace longhaul::flows;
using namespace longhaul::flows::hosted;
using longhaul::modules::TwinReader;

namespace {

// A stream with a writer at its beginning, and what arrives at its end: bytes as they are, other things in
// brackets.
struct WrittenStream {
  explicit WrittenStream(config::Features features = probe_features()) : pair(with_probe({})) {
    pair.connect();
    pair.run_for(200ms);
    link::OpenRequest request;
    request.destination.address = boost::asio::ip::make_address("10.10.2.2");
    request.destination.port = 445;
    request.features = features;
    stream = &pair.a.session.open(request, pair.now());
    writer.emplace(*stream);
    pair.b.on_event = [this](const link::Event& event) {
      if (event.kind == link::Event::Kind::stream && event.stream_event == link::EventKind::opened)
        far = event.stream;
    };
    pair.run_for(200ms);
    REQUIRE(far);
  }

  void run() {
    for (int turn = 0; turn < 1000; ++turn) {
      writer->flush();
      pair.run_for(5ms);
      read();
    }
  }
  void read() {
    link::Stream& end = *pair.b.session.find(*far);
    for (;;) {
      if (const std::size_t ahead = end.reader().readable_before_message(); ahead > 0) {
        const std::size_t size = std::min(ahead, end.reader().readable().front().size());
        arrived += Probe::text(end.reader().readable().front().sub(0, size));
        end.reader().consume(size, pair.now(), 40ms);
      } else if (auto body = end.reader().poll_message(pair.now(), 40ms)) {
        ++records;
        const auto said = reader.feed(std::move(*body));
        REQUIRE(said.has_value());
        if (!*said) continue;
        arrived += (*said)->aside ? "[aside]" : "[" + Probe::text(*(*said)->message) + "]";
      } else {
        break;
      }
    }
    if (end.reader().state() == link::ReadState::ended && !std::exchange(ended, true)) arrived += "[end]";
  }

  Pair pair;
  link::Stream* stream = nullptr;
  std::optional<OutputQueue> writer;
  std::optional<link::StreamId> far;
  TwinReader reader;
  std::string arrived;
  int records = 0;
  bool ended = false;
};

}  // namespace

TEST_CASE("a module's output to the stream arrives in the order in which it was made") {
  WrittenStream written;
  OutputQueue& writer = *written.writer;
  writer.write(Probe::slice("one "));
  writer.write_message(Probe::slice("first"));
  writer.write({});
  writer.write(Probe::slice("two "));
  writer.step_aside();
  CHECK(writer.has_stepped_aside());
  CHECK_FALSE(writer.passes());  // what it held before must be written first
  writer.write(Probe::slice("held"));
  writer.step_aside();
  writer.end();
  writer.end();
  CHECK(writer.has_ended());
  CHECK(writer.size_bytes() == 17);
  CHECK_FALSE(writer.is_over());
  written.run();
  CHECK(written.arrived == "one [first]two [aside]held[end]");
  CHECK(writer.size_bytes() == 0);
  CHECK(writer.passes());
  CHECK(writer.is_over());
}

TEST_CASE("what a stream has no room for waits, and a message goes in pieces") {
  config::Features features = probe_features();
  features.window_bytes = 1024;
  WrittenStream written{features};
  OutputQueue& writer = *written.writer;
  const std::string raw = pattern(20'000, 1), message = pattern(30'000, 2);
  writer.write(Probe::slice(raw));
  writer.write_message(Probe::slice(message));
  CHECK(writer.flush());
  CHECK(writer.size_bytes() > 0);
  CHECK(writer.size_bytes() < 50'000);
  CHECK_FALSE(writer.flush());  // no room yet
  writer.write(Probe::slice("behind"));
  written.run();
  CHECK((written.arrived == raw + "[" + message + "]behind"));
  CHECK(written.records > 1);
  CHECK(writer.empty());
}

TEST_CASE("output to a stream without a reader is dropped") {
  WrittenStream written;
  OutputQueue& writer = *written.writer;
  writer.write(Probe::slice("waits"));
  writer.stop();
  CHECK_FALSE(writer.has_reader());
  CHECK_FALSE(writer.flush());
  CHECK(writer.empty());
  CHECK(writer.size_bytes() == 0);
  CHECK(writer.is_over());
  writer.write(Probe::slice("late"));
  writer.write_message(Probe::slice("late"));
  writer.step_aside();
  CHECK(writer.empty());
  CHECK(writer.passes());
  written.run();
  CHECK(written.arrived.empty());
}
