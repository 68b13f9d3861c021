// SPDX-License-Identifier: Apache-2.0
// Files that a reset has robbed of promised writes, for clients that open a file again by its name after a
// reset and go on as if nothing had been, as Linux does: the next open that would go on is told. Kept by the
// near side for all flows of a site; what was lost and how it is told is the dialects'.
#pragma once
#include <array>
#include <compare>
#include <cstddef>
#include <deque>
#include <string>

namespace longhaul::smb {

class LostWrites {
 public:
  // The same before and after a reset: its GUID, or where a dialect has none its address. Zero: not known, so
  // nothing is kept.
  using Client = std::array<std::byte, 16>;
  struct File {
    Client client{};
    std::u16string share;  // as the client named it
    std::u16string path;   // in the share, folded
    auto operator<=>(const File&) const = default;
  };

  void add(const File& file);
  // True once: whoever asks tells the client, or has made the loss meaningless.
  bool take(const File& file);

 private:
  static constexpr std::size_t kMost = 1024;  // the oldest go first
  std::deque<File> files_;
};

}  // namespace longhaul::smb
