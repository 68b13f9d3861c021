// SPDX-License-Identifier: Apache-2.0
#include "codecs/dedup/lazy_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <limits>

namespace longhaul::dedup {
namespace {

constexpr std::size_t kPage = 4096;

std::size_t round_up(std::size_t value, std::size_t step) { return (value + step - 1) / step * step; }

}  // namespace

Result<LazyMemory> LazyMemory::make(std::size_t bytes) {
  const auto error = make_error_code(boost::system::errc::not_enough_memory);
  if (bytes == 0 || bytes > std::numeric_limits<std::size_t>::max() / 2) return error;
  const std::size_t mapped = round_up(bytes, kPage) + kHugePage + 2 * kMargin;
  void* mapping =
      ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) return error;
  const auto first = reinterpret_cast<std::uintptr_t>(mapping);
  auto* data = reinterpret_cast<std::byte*>(round_up(first + kMargin, kHugePage));
  // The first part stays in small pages, so that a peer with little traffic does not hold 2 MiB for it. A
  // kernel without huge pages refuses, which costs speed only.
  if (bytes >= 2 * kHugePage) (void)::madvise(data + kHugePage, bytes - kHugePage, MADV_HUGEPAGE);
  return LazyMemory(mapping, mapped, data, bytes);
}

LazyMemory::~LazyMemory() {
  if (!mapping_) return;
  if (asked_ahead_) PageFiller::instance().cancel(data_, size_);
  ::munmap(mapping_, mapped_);
}

void LazyMemory::make_ahead(std::size_t begin, std::size_t end, PageFiller::When when) {
  begin = round_up(begin, kPage);
  end = std::min(end, size_) / kPage * kPage;
  if (begin >= end) return;
  asked_ahead_ = true;
  PageFiller::instance().fill(data_ + begin, end - begin, when);
}

void LazyMemory::release(std::size_t begin, std::size_t end) {
  begin = round_up(begin, kPage);
  end = std::min(end, size_) / kPage * kPage;
  if (begin >= end) return;
  if (asked_ahead_) PageFiller::instance().cancel(data_ + begin, end - begin);
  (void)::madvise(data_ + begin, end - begin, MADV_DONTNEED);
}

}  // namespace longhaul::dedup
