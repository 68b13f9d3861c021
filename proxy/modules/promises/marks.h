// SPDX-License-Identifier: Apache-2.0
// Marks on disk: a file is marked before the first of its WRITEs is promised, so that after the daemon was
// killed or its host lost power the next one knows which clients to inform. There is one mark and one sync
// per open, not per WRITE; marks made at the same time share the sync. Only promises wait for the disk: until
// the mark is durable the server answers the WRITEs. This file decides what a leftover mark means; the halves
// of the protocol versions decide which open needs one; marks_text.h has the text, proxy/journal_keeper.h the
// file.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "proxy/modules/journal.h"
#include "proxy/modules/promises/lost_writes.h"
#include "proxy/modules/promises/marks_text.h"
#include "proxy/modules/twin/open_key.h"

namespace longhaul::promises {

using twin::OpenKey;
using twin::OpenKeyHash;

class OpenMarks;

// The marks of all flows of a daemon. Without a journal file (on_new) marks are durable at once: for tests,
// and if nothing is to be stored.
class Marks final : public modules::Journal {
 public:
  using File = LostWrites::File;
  explicit Marks(LostWrites& lost) : lost_(lost) {}

  // Journal
  bool restore(std::string_view text) override;
  Batch take() override;
  void stored(bool done) override;
  void on_new(std::function<void()> call) override;

  // The number of the previous daemon, if all its marks were read; zero if there was none or they were not.
  std::uint64_t number_before() const { return before_; }

  // For LostWrites: the client has been informed, or has replaced the file. Its old marks are no longer
  // needed.
  void record_gone(const File& file);
  // The file was renamed, with everything below it if it is a folder. Marks that have no room for their new
  // names are given up, and so are further promises for their opens.
  void moved(const File& file, const File& to);

  // When the file grows beyond kMostFileBytes, it is replaced by the marks that still count. The total is
  // what lost_writes.h could take over after a failure: one client may have a quarter of it.
  static constexpr std::size_t kMostFileBytes = 8 << 20, kMostOfClient = LostRecords::kMost / 4;
  std::size_t size() const { return marks_.size(); }
  bool any(const modules::Ends& ends) const;

 private:
  friend OpenMarks;
  struct Mark {
    std::uint64_t number = 0;    // in the file
    std::uint64_t near = 0;      // as LostWrites::Loss::near
    OpenMarks* owner = nullptr;  // null: the mark only backs a record of lost writes
    OpenKey open{};
    bool durable = false;
  };
  struct Before {
    bool operator()(const File& a, const File& b) const;
  };
  using All = std::multimap<File, Mark, Before>;

  std::optional<All::iterator> add(const File& file, const OpenKey& open, std::uint64_t near,
                                   OpenMarks& owner);
  void release(All::iterator mark);
  void erase(All::iterator mark);
  bool has_room(const File& file) const;
  static MarkLine line(const File& file, const Mark& mark);
  void put(const File& file, Mark& mark);
  void drop(const File& file, const Mark& mark);
  void something_new();

  LostWrites& lost_;
  std::function<void()> on_new_;
  All marks_;
  std::map<LostWrites::Client, std::size_t> of_client_;
  std::size_t name_bytes_ = 0;
  std::uint64_t last_number_ = 0, before_ = 0;

  MarksText text_;
  bool is_failing_ = false;
  std::uint64_t on_its_way_ = 0;                    // marks up to this number are being written
  std::map<std::uint64_t, All::iterator> pending_;  // not durable yet, by number
  std::vector<OpenMarks*> to_wake_;
};

// The marks of one flow.
class OpenMarks {
 public:
  explicit OpenMarks(std::shared_ptr<LostWrites> lost) : lost_(std::move(lost)) {}
  ~OpenMarks();
  OpenMarks(const OpenMarks&) = delete;
  OpenMarks& operator=(const OpenMarks&) = delete;

  // `call` is called when a mark that was `pending` no longer is; on the loop, never from within a call here.
  void on_news(std::function<void()> call) { on_news_ = std::move(call); }

  // No effect if the open is marked.
  void mark(const OpenKey& open, const LostWrites::File& file, std::uint64_t near = 0);
  void unmark(const OpenKey& open);
  // Refused: there are too many, or they cannot be stored.
  enum class State : std::uint8_t { refused, pending, durable };
  State state(const OpenKey& open) const;
  // The other half has marked it as well, under its present name.
  void marked_at_twin(const OpenKey& open) {
    at_twin_.insert(open);
    refused_at_twin_.erase(open);
  }
  bool is_marked_at_twin(const OpenKey& open) const { return at_twin_.contains(open); }
  // The other half has not: its disk fails, or is full.
  void refused_at_twin(const OpenKey& open) { refused_at_twin_.insert(open); }
  bool is_refused_at_twin(const OpenKey& open) const { return refused_at_twin_.contains(open); }
  // Opens whose marks have become durable, or were refused, each once.
  struct News {
    OpenKey open;
    bool is_marked = false;
  };
  std::vector<News> poll();

 private:
  friend Marks;
  void refuse(const OpenKey& open);

  std::shared_ptr<LostWrites> lost_;
  std::function<void()> on_news_;
  std::unordered_map<OpenKey, Marks::All::iterator, OpenKeyHash> marks_;
  std::unordered_set<OpenKey, OpenKeyHash> at_twin_, refused_at_twin_;
  std::unordered_set<OpenKey, OpenKeyHash> refused_;  // until they are marked, or end
  std::unordered_set<OpenKey, OpenKeyHash> untold_;   // not returned by poll() yet
};

}  // namespace longhaul::promises
