// SPDX-License-Identifier: Apache-2.0
#include "cache/segment_threads.h"

#include "cache/error.h"

namespace longhaul::cache {
namespace {

constexpr std::size_t kFoundAhead = 64;  // segments that a start reads ahead of take()
// Megabytes go to the kernel at once: requests that a block waits for go first. Segments that do not fit in
// the queue are dropped.
constexpr int kWriterNiceness = 5;

SegmentFolder::Options with_note(SegmentFolder::Options folder, std::function<void(std::string)> note) {
  folder.note = std::move(note);
  return folder;
}

}  // namespace

SegmentThreads::SegmentThreads(SegmentFolder::Options folder, std::function<void()> wake)
    : mailbox_(std::move(wake)),
      folder_(
          with_note(std::move(folder), [this](std::string line) { mailbox_.put(Note{std::move(line)}); })),
      writer_("dict-write", kWriterNiceness),
      reader_("dict-read") {}

SegmentThreads::~SegmentThreads() { mailbox_.close(); }

void SegmentThreads::start(std::uint64_t start) {
  writer_.post([this, start] {
    const bool usable = folder_.start([&](Record&& record) {
      mailbox_.put_below(kFoundAhead, Found{start, std::move(record)});
    });
    mailbox_.put(Started{start, usable, folder_.overhead_bytes()});
  });
}

void SegmentThreads::write(Slot slot, Record record, std::vector<Slice> parts) {
  writer_.post([this, slot, record = std::move(record), parts = std::move(parts)]() mutable {
    auto result = folder_.write(record, parts);
    parts.clear();
    mailbox_.put(Written{slot, result, std::move(record), folder_.overhead_bytes()});
  });
}

void SegmentThreads::use(std::uint64_t number, std::uint64_t stamp) {
  writer_.post([this, number, stamp] { folder_.use(number, stamp); });
}

void SegmentThreads::remove(std::uint64_t number, std::uint64_t file_bytes) {
  writer_.post([this, number, file_bytes] {
    folder_.remove(number, file_bytes);
    mailbox_.put(Removed{folder_.overhead_bytes()});
  });
}

void SegmentThreads::clear(std::uint64_t clear) {
  writer_.post([this, clear] {
    const bool destroyed = folder_.clear();
    mailbox_.put(Cleared{clear, destroyed, folder_.overhead_bytes()});
  });
}

void SegmentThreads::read(reduction::LoadId load, Slot slot, std::uint64_t number, const SegmentName& name,
                          std::uint32_t offset, std::uint32_t size) {
  reader_.post([this, load, slot, number, name, offset, size] {
    mailbox_.put(Loaded{load, slot, number, folder_.read(number, name, offset, size)});
  });
}

void SegmentThreads::refuse(reduction::LoadId load) {
  reader_.post([this, load] {
    mailbox_.put(Loaded{load, kNoSlot, 0, make_error_code(StoreError::truncated)});
  });
}

}  // namespace longhaul::cache
