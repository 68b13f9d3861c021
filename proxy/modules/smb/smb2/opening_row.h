// SPDX-License-Identifier: Apache-2.0
// How a client opens the files of a folder that was listed, one after the other: in which order
// (next_files.h), how, and what it asks about them; so which it will open next, and of how many of those it
// pays to be ahead. Pure; what is done about it is decided in far_opens.h.
#pragma once
#include <deque>
#include <optional>
#include <vector>

#include "proxy/modules/ahead/next_files.h"
#include "proxy/modules/smb/smb2/plain_open.h"

namespace longhaul::smb::smb2 {

class OpeningRow {
 public:
  struct Opened {  // a CREATE of the client that may be one of a row
    PlainOpen open;
    SessionId session = 0;
    TreeId tree = 0;
    FileName name;
  };
  static constexpr std::size_t kMostAhead = 128;

  // What the server tells of a directory. `listing` is another number each time that it begins again.
  void listed(const Open& directory, std::uint64_t listing, std::uint8_t info_class, Bytes entries);

  // The client opens this, whoever answers. In the order in which it asks.
  void opened(const Opened& opened);
  void read() { unread_ = 0; }  // it reads a file
  // It asks this about the file that it opened last, although that was not expected.
  void asked(const QueryInfoRequest& query);
  // It is expected to ask these about the next ones.
  void expects(std::vector<Slice> questions) { questions_ = std::move(questions); }

  // The last one opened, of a listed folder.
  const std::optional<Opened>& last() const { return last_; }
  const std::vector<Slice>& questions() const { return questions_; }
  // It was opened like the one before, and those opened are read and can be had: so may the next ones be.
  bool goes_on() const { return alike_ && unread_ <= kMostUnread && refused_ < kMostRefused; }
  // The next one that was not given out. given_out(): it was. none_given_out(): what was, may be again.
  const NextFiles::File* next();
  void given_out();
  void none_given_out();

  // What became of one that was opened ahead: whether an oplock was to be had, and whether the client wanted
  // it.
  void granted() { refused_ = 0; }
  void refused() { ++refused_; }
  void used();
  void wasted();

  static constexpr std::size_t kMostQuestions = 4;

 private:
  struct Folder {
    SessionId session = 0;
    TreeId tree = 0;
    std::u16string path;
    std::uint64_t listing = 0;
    NextFiles files;
  };
  Folder* folder_of(const Opened& opened);

  static constexpr std::size_t kFirstOpens = 4;
  static constexpr std::size_t kMostFolders = 4, kMostNames = 1 << 14;
  // Who reads none of so many files that it opens does not read.
  static constexpr unsigned kMostUnread = 4;
  static constexpr unsigned kMostRefused = 3;

  std::deque<Folder> folders_;  // the one used last in front
  std::optional<Opened> last_;
  bool alike_ = false;
  std::vector<Slice> questions_;
  unsigned unread_ = kMostUnread;  // opened since the last READ
  unsigned refused_ = 0;           // in a row
  std::size_t depth_ = kFirstOpens;
  std::size_t used_since_ = 0;  // since depth_ grew last, when some had been wasted
  bool careful_ = false;
};

}  // namespace longhaul::smb::smb2
