// SPDX-License-Identifier: Apache-2.0
// See opening_row.h.
#include "proxy/modules/smb/smb2/opening_row.h"

#include <algorithm>

#include "codecs/little_endian.h"
#include "proxy/modules/smb/smb2/question.h"
#include "proxy/modules/smb/smb2/records.h"

namespace longhaul::smb::smb2 {
namespace {

constexpr std::size_t kMostNameBytes = 510;  // of a part of a path, on any file system that is served
// Of one listed file, apart from its name: the entry, and its positions in four orders.
constexpr std::size_t kEntryBytes = sizeof(NextFiles::File) + 4 * 2 * sizeof(std::uint32_t);

std::u16string_view folder_in(std::u16string_view path) {
  const std::size_t end = path.rfind(u'\\');
  return end == path.npos ? std::u16string_view() : path.substr(0, end);
}

std::u16string utf16(std::string_view bytes) {
  std::u16string text(bytes.size() / 2, u'\0');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = load_le<char16_t>(as_bytes(bytes), 2 * i);
  return text;
}

}  // namespace

// ---- folders

void OpeningRow::listed(const Open& directory, MessageId listing, std::uint8_t info_class, Bytes entries) {
  auto found = std::find_if(folders_.begin(), folders_.end(), [&](const Folder& folder) {
    return folder.session == directory.session && folder.tree == directory.tree &&
           folder.path == directory.name.path;
  });
  if (found == folders_.end()) {
    if (folders_.size() == kMostFolders) folders_.pop_back();
    folders_.push_front({.session = directory.session,
                         .tree = directory.tree,
                         .path = directory.name.path,
                         .files = {},
                         .bytes = 0});
    found = folders_.begin();
  }
  if (found->listing != listing) {
    found->files.clear();
    found->bytes = 0;
    found->listing = listing;
  }
  std::size_t names = 0;
  for (const Folder& folder : folders_) names += folder.files.size();
  while (names < kMostNames) {
    const auto entry = take_directory_entry(info_class, entries);
    if (!entry || !*entry) return;
    constexpr std::uint32_t kNoFile = file_attributes::directory | file_attributes::reparse_point |
                                      file_attributes::offline | file_attributes::recall_on_data_access;
    if ((*entry)->file_attributes & kNoFile || (*entry)->name.size() > kMostNameBytes) continue;
    found->files.add(utf16(as_text((*entry)->name)), (*entry)->end_of_file);
    found->bytes += kEntryBytes + (*entry)->name.size();
    ++names;
  }
}

OpeningRow::Folder* OpeningRow::folder_of(const Opened& opened) {
  const std::u16string_view path = folder_in(opened.name.path);
  const auto found = std::find_if(folders_.begin(), folders_.end(), [&](const Folder& folder) {
    return folder.session == opened.session && folder.tree == opened.tree && folder.path == path;
  });
  if (found == folders_.end()) return nullptr;
  if (found != folders_.begin()) std::rotate(folders_.begin(), found, std::next(found));
  return &folders_.front();
}

std::size_t OpeningRow::state_bytes() const {
  std::size_t bytes = 0;
  for (const Folder& folder : folders_) bytes += folder.bytes;
  return bytes;
}

// ---- the client's behaviour

void OpeningRow::opened(const Opened& opened) {
  ++unread_;
  Folder* folder = folder_of(opened);
  if (!folder || !folder->files.opened(utf16(opened.open.last()))) return;
  // In the same way and the same folder; a client that opens files differently begins a new row.
  alike_ = last_ && last_->open.is_like(opened.open) && last_->session == opened.session &&
           last_->tree == opened.tree && last_->open.folder() == opened.open.folder();
  last_ = opened;
  if (!alike_) refused_ = 0;
}

void OpeningRow::read_beside(const FileName& file) {
  if (last_ && last_->name.tree == file.tree && folder_in(last_->name.path) == folder_in(file.path)) read();
}

void OpeningRow::asked(const QueryInfoRequest& query) {
  if (!last_) return;
  const auto question = query.type == InfoType::file ? question_of(query) : std::nullopt;
  const auto same = [&](const Slice& other) { return as_text(other.bytes()) == as_text(question->bytes()); };
  if (question && questions_.size() < kMostQuestions &&
      std::none_of(questions_.begin(), questions_.end(), same)) {
    questions_.push_back(*question);
  }
}

// ---- prediction

const NextFiles::File* OpeningRow::next() {
  Folder* folder = last_ ? folder_of(*last_) : nullptr;
  return folder ? folder->files.next(depth_) : nullptr;
}

void OpeningRow::given_out() {
  if (Folder* folder = folder_of(*last_)) folder->files.given_out();
}

void OpeningRow::none_given_out() {
  for (Folder& folder : folders_) folder.files.none_given_out();
}

void OpeningRow::used() {
  // Each one that is used is followed by two, as long as none was opened in vain; then by one more in each
  // round.
  if (!careful_) {
    ++depth_;
  } else if (++used_since_ >= depth_) {
    ++depth_;
    used_since_ = 0;
  }
  depth_ = std::min(depth_, most_ahead_);
}

void OpeningRow::wasted() {
  careful_ = true;
  used_since_ = 0;
  depth_ = std::max<std::size_t>(1, depth_ / 2);
}

}  // namespace longhaul::smb::smb2
