// SPDX-License-Identifier: Apache-2.0
// A client's connection through one near daemon and one far daemon, for tests of lost writes.
#pragma once
#include "proxy/modules/smb/smb2/model.h"

namespace longhaul::smb::smb2::model {

inline std::shared_ptr<LostWrites> near_daemon(std::uint64_t number) {
  return std::make_shared<LostWrites>(number);
}

// A client's connection through one near daemon, to a server with some files.
struct Visit : World {
  Visit(std::shared_ptr<LostWrites> near, const std::shared_ptr<LostWrites>& far)
      : World(3, std::move(near), std::make_shared<Channels>(), {}, far) {
    server.files["a"] = server.files["b"] = "old";
    REQUIRE(connect());
  }
  Status opens(std::string_view name, Disposition disposition = Disposition::open,
               std::uint32_t access = 0x1F01FF) {
    return status(send_create(name, disposition, kNone, 0, access));
  }
  FileId open(std::string_view name) {
    const auto file = create(name, Disposition::open, kNone);
    REQUIRE(file);
    settle();
    return *file;
  }
  // A WRITE that is answered although nothing reaches the far half, or is not.
  bool promises(const FileId& file, std::string_view data) {
    link_cut = true;
    const MessageId write = send_write(file, 0, data);
    settle();
    const bool promised = answers.contains(write);
    link_cut = false;
    return promised;
  }
  // The near proxy is gone with all that is on its way.
  void near_fails() {
    link_cut = true;
    far().twin_lost();
  }
};

}  // namespace longhaul::smb::smb2::model
