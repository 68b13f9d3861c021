// SPDX-License-Identifier: Apache-2.0
// A client that lists a folder of small files and reads them one after the other, so that the pair opens the
// next ones ahead, through both halves (model.h).
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "proxy/modules/smb/smb2/model.h"

namespace longhaul::smb::smb2::model {

struct FolderReader : World {
  FolderReader(std::uint32_t seed, int count) : World(seed) {
    for (int i = 0; i < count; ++i) {
      const std::string number = std::to_string(1000 + i);
      names.push_back("file" + number);
      server.files[path(i)] = "bytes of " + number;
    }
    server.listing = names;
    // Not as they are sorted.
    std::reverse(server.listing.begin(), server.listing.end());
    REQUIRE(connect());
  }
  std::string path(int i) const { return "dir\\" + names.at(static_cast<std::size_t>(i)); }

  void list() {
    const auto directory = create("dir", Disposition::open, kNone, create_options::directory_file,
                                  access::read_data | access::read_attributes);
    REQUIRE(directory);
    while (status(send_query_directory(*directory, 0, 1000)) == Status::success) {
    }
    REQUIRE(status(send_close(*directory)) == Status::success);
  }
  MessageId open(int i) {
    return send_create(path(i), Disposition::open, kNone, 0, access::read_data | access::synchronize);
  }
  std::string read(const FileId& file) {
    const auto answer = wait(send_read(file, 0, 4096));
    REQUIRE(answer);
    REQUIRE(answer->header().status == Status::success);
    return std::string(as_text(parse_read_response(answer->first().bytes)->data));
  }
  // Opens, reads and closes it.
  std::string read(int i) {
    const auto file = opened(open(i));
    REQUIRE(file);
    std::string data = read(*file);
    REQUIRE(status(send_close(*file)) == Status::success);
    return data;
  }
  void read_in_order(int begin, int end) {
    for (int i = begin; i < end; ++i) {
      CHECK(read(i) == server.files[path(i)]);
      settle();
    }
  }
  // All that was opened ahead in vain is closed, and the client believes nothing that is not so.
  void end() {
    settle();
    pass(std::chrono::seconds(10));
    settle();
    CHECK(server.open_files() == 0);
    CHECK_FALSE(server.breaking());
    CHECK_FALSE(aborted);
    CHECK(near().quiet());
    CHECK(far().quiet());
    const modules::Counters& counters = near_counters();
    CHECK(counters.opens_ahead == counters.opens_ahead_used + counters.opens_ahead_wasted);
  }

  std::vector<std::string> names;
};

}  // namespace longhaul::smb::smb2::model
