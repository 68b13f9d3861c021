// SPDX-License-Identifier: Apache-2.0
// Which opens of a connection may refer to the same file, judged by name, and their shared counts of changes
// to the file. A change is counted once, however often the file is open; a part that caches data of the file
// compares the count with the earlier one.
#pragma once
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

#include "codecs/keyed_hash.h"
#include "codecs/slice.h"
#include "proxy/modules/smb/smb2/types.h"

namespace longhaul::smb::smb2 {

// A name in a share. Inexact names may match any file: other spellings may name the same file (8.3 names,
// opens by id, names longer than the limit).
struct FileName {
  static constexpr std::size_t kMostLetters = 4096;

  TreeId tree = 0;
  std::u16string path;  // as sent by the client, ASCII letters in upper case, without a stream's name
  bool exact = true;
  bool operator==(const FileName&) const = default;
};
// In the form of messages.
Slice utf16_of(const std::u16string& text);
// True in doubt, and an equivalence for exact names: compares their last parts, because shares may overlap,
// with all letters beyond ASCII treated as one. Servers fold those too, each to one letter.
bool may_be_same_file(const FileName& a, const FileName& b);

struct FileCounts {
  std::uint64_t changes = 0;  // requests after which cached data is void
  std::uint64_t writes = 0;   // of these: only WRITEs
  std::uint64_t doubts = 0;   // cached attributes are void for another reason
  std::uint64_t opens = 0;
  std::uint64_t opening = 0;    // unanswered CREATEs
  std::uint64_t unsettled = 0;  // unanswered changes: data may have been read before or after them
  std::uint64_t promised = 0;   // WRITEs, and truncations, that the server has not answered
  std::uint64_t locks = 0;      // byte ranges were locked, since the first of these opens
};
using FileCount = std::uint64_t FileCounts::*;

// All opens and requests whose names may refer to one file. Exists while there is at least one.
class FileGroup {
 public:
  // The count for this file: its own, and that of names that may match any file.
  std::uint64_t count(FileCount which) const;
  void add(FileCount which, std::uint64_t more = 1);
  void remove(FileCount which);
  bool is_any() const { return is_any_; }

  FileGroup(const FileGroup&) = delete;
  FileGroup& operator=(const FileGroup&) = delete;
  ~FileGroup();

 private:
  friend class Files;
  struct Shared {
    struct NameHash {
      std::size_t operator()(const std::u16string& name) const;
    };
    std::unordered_map<std::u16string, std::weak_ptr<FileGroup>, NameHash> groups;
    FileCounts any, all;  // of inexact names; of all names
  };
  FileGroup(std::shared_ptr<Shared> shared, std::u16string key, bool is_any)
      : shared_(std::move(shared)), key_(std::move(key)), is_any_(is_any) {}

  std::shared_ptr<Shared> shared_;
  std::u16string key_;
  bool is_any_ = false;
  FileCounts own_;
};
using FileGroupRef = std::shared_ptr<FileGroup>;

inline bool may_be_same_file(const FileGroup& a, const FileGroup& b) {
  return &a == &b || a.is_any() || b.is_any();
}

class Files {
 public:
  Files();
  // Takes time in proportion to the length of the name.
  FileGroupRef group_of(const FileName& name);
  const FileGroupRef& any() const { return any_; }

 private:
  std::shared_ptr<FileGroup::Shared> shared_;
  FileGroupRef any_;
};

// Increases a count during its lifetime.
class Counted {
 public:
  Counted() = default;
  Counted(FileGroupRef group, FileCount which) : group_(std::move(group)), which_(which) {
    group_->add(which_);
  }
  Counted(Counted&& other) noexcept : group_(std::move(other.group_)), which_(other.which_) {}
  Counted& operator=(Counted&& other) noexcept {
    std::swap(group_, other.group_);
    std::swap(which_, other.which_);
    return *this;
  }
  ~Counted() { reset(); }
  void reset() {
    if (group_) group_->remove(which_);
    group_.reset();
  }
  const FileGroupRef& group() const { return group_; }
  explicit operator bool() const { return group_ != nullptr; }

 private:
  FileGroupRef group_;
  FileCount which_ = &FileCounts::opens;
};

}  // namespace longhaul::smb::smb2
