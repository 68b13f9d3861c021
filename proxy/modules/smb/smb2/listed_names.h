// SPDX-License-Identifier: Apache-2.0
// The names that a client has received from listings, in order: for a listing that must be restarted without
// them. The memory of all listings of a connection is limited together.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace longhaul::smb::smb2 {

class ListedNames {
 public:
  using List = std::vector<std::string>;  // of one listing

  // Returns false if there are too many.
  bool add(List& list, const std::string& name) {
    if (list.size() >= kMostNames || bytes_ + cost_of(name) > kMostBytes) return false;
    bytes_ += cost_of(name);
    list.push_back(name);
    return true;
  }
  // Keeps only the first `count`.
  void shorten(List& list, std::size_t count) {
    for (; list.size() > count; list.pop_back()) bytes_ -= cost_of(list.back());
  }
  void forget(List& list) { shorten(list, 0); }

  std::size_t bytes() const { return bytes_; }

  // Limits of one listing, and of all: a client that lists more, and whose listing must be restarted, is
  // reset.
  static constexpr std::size_t kMostNames = 1 << 16, kMostBytes = 16 << 20;

 private:
  static std::size_t cost_of(const std::string& name) { return sizeof(std::string) + name.size(); }

  std::size_t bytes_ = 0;
};

}  // namespace longhaul::smb::smb2
