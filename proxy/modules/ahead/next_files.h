// SPDX-License-Identifier: Apache-2.0
// Predicts which files of a listed folder a client will open next, from the order in which it opened others:
// as listed, or by name as programs sort it. Pure policy; the halves open the files.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace longhaul::ahead {

class NextFiles {
 public:
  struct File {
    std::u16string name;
    std::uint64_t size = 0;
  };

  void add(std::u16string name, std::uint64_t size);
  void clear();
  std::size_t size() const { return files_.size(); }

  // The client opened a file of this name. Returns false if it is not in the listing.
  bool opened(const std::u16string& name);
  // Whether the client has opened at least two files that are adjacent in some order.
  bool in_order() const;
  // The next file that was not given out, among the `most` after the one opened last. Only while in_order().
  // given_out(): marks it as given out. none_given_out(): all may be given out again.
  const File* next(std::size_t most);
  void given_out() { ++ahead_; }
  void none_given_out() { ahead_ = 0; }

 private:
  // As listed; by UTF-16 code units; the same in upper case; and with digits compared as numbers.
  static constexpr std::size_t kOrders = 4;
  static constexpr std::size_t kByUnits = 1;
  // How many files a client may skip if it needs only some of them.
  static constexpr std::size_t kMostSkipped = 8;
  struct Order {
    std::vector<std::uint32_t> files;
    std::vector<std::uint32_t> at;    // the position of each file
    std::optional<std::size_t> last;  // the position of the last opened file
    unsigned run = 0;                 // files opened in sequence, except the first
  };

  bool is_worth_sorting() const;
  void sort();
  std::optional<std::uint32_t> find(const std::u16string& name) const;
  static void follow(Order& order, std::uint32_t file);
  std::size_t best() const;

  std::vector<File> files_;
  std::array<Order, kOrders> orders_;
  // Sorting all files again for each addition would cost too much: it is done for many additions, or after a
  // while.
  static constexpr std::size_t kFewFiles = 64, kFilesForEachOpen = 16;
  std::size_t sorted_ = 0;        // how many of files_, from the first, are sorted
  std::size_t opened_since_ = 0;  // files opened since more were added
  std::size_t ahead_ = 0;         // files given out after the one opened last
  std::size_t followed_ = 0;      // the order in which they were given out
};

}  // namespace longhaul::ahead
