// SPDX-License-Identifier: Apache-2.0
// A daemon's marks (promises/marks.h) and the disk that they are on, for tests: what was not synced is lost
// with its power.
#pragma once
#include <memory>
#include <string>

#include "proxy/modules/promises/marks.h"

namespace longhaul::promises::test {

struct Host {
  explicit Host(std::uint64_t number, std::string left = {}) : lost(std::make_shared<LostWrites>(number)) {
    if (!left.empty()) understood = marks().restore(left);
    file = synced = std::move(left);
    marks().on_new([this] { ++news; });
  }
  Marks& marks() { return lost->marks(); }
  void write(bool done = true) {
    const auto batch = marks().take();
    if (done) {
      if (batch.place == modules::Journal::Batch::Place::instead) file.clear();
      file += batch.text;
      if (batch.durable) synced = file, ++syncs;
    }
    marks().stored(done);
  }

  std::shared_ptr<LostWrites> lost;
  std::string file, synced;
  bool understood = false;
  int news = 0, syncs = 0;
};

inline LostWrites::File named(std::u16string path, std::uint8_t client = 1) {
  LostWrites::File file{.share = u"SHARE", .path = std::move(path)};
  file.ends.client[15] = std::byte{client};
  file.ends.server_port = 445;
  return file;
}

}  // namespace longhaul::promises::test
