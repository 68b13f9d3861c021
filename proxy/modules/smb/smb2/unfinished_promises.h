// SPDX-License-Identifier: Apache-2.0
// Requests that the client believes to be completed and the server has not answered, by file, and which
// requests must wait for them. Pure. Sequences give the order in which promises and requests arrived.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include "proxy/modules/smb/smb2/order_scope.h"

namespace longhaul::smb::smb2 {

class UnfinishedPromises {
 public:
  using Sequence = std::uint64_t;

  // Until its request has arrived it may have any range.
  void add(const FileGroupRef& file, Sequence sequence);
  void is_write(const FileGroupRef& file, Sequence sequence, std::uint64_t offset, std::uint32_t length);
  // `offset`: of a WRITE.
  void remove(const FileGroupRef& file, Sequence sequence, std::optional<std::uint64_t> offset);

  // Whether a request must wait for earlier ones.
  bool hold_up(const OrderScope& scope, Sequence sequence) const;
  // Whether this file has earlier ones, and which is the first.
  bool any_before(const FileGroup& file, Sequence sequence) const;
  std::optional<Sequence> first_of(const FileGroup& file) const;

 private:
  struct Write {
    Sequence sequence = 0;
    std::uint32_t length = 0;
  };
  struct OfFile {
    FileGroupRef file;
    std::set<Sequence> all;
    std::set<Sequence> others;                   // of these: not WRITEs
    std::multimap<std::uint64_t, Write> writes;  // by offset
    std::uint64_t longest_write = 0;
  };
  static bool before(const std::set<Sequence>& promises, Sequence sequence) {
    return !promises.empty() && *promises.begin() < sequence;
  }
  static bool overlap(const OfFile& promises, const OrderScope& scope, Sequence sequence);

  std::set<Sequence> all_;
  std::unordered_map<const FileGroup*, OfFile> files_;
};

}  // namespace longhaul::smb::smb2
