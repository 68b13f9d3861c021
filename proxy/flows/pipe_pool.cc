// SPDX-License-Identifier: Apache-2.0
#include "proxy/flows/pipe_pool.h"

#include <fcntl.h>
#include <unistd.h>

namespace longhaul::flows {

namespace {
// Below this size a pipe costs more calls than reading and writing. The kernel gives such pipes to users over
// their quota.
constexpr int kUsefulBytes = 64 << 10;
}  // namespace

Pipe::Pipe(int read_end, int write_end, std::size_t capacity_bytes, std::shared_ptr<std::size_t> alive)
    : read_end_(read_end), write_end_(write_end), capacity_bytes_(capacity_bytes), alive_(std::move(alive)) {
  ++*alive_;
}

Pipe::~Pipe() {
  if (read_end_ < 0) return;
  --*alive_;
  ::close(read_end_);
  ::close(write_end_);
}

Pipe PipePool::lend() {
  if (!kept_.empty()) {
    Pipe pipe = std::move(kept_.back());
    kept_.pop_back();
    return pipe;
  }
  if (*alive_ >= most_) return {};
  int ends[2];
  if (::pipe2(ends, O_NONBLOCK | O_CLOEXEC) != 0) return {};
  int bytes = ::fcntl(ends[1], F_SETPIPE_SZ, *alive_ < kLarge ? kLargeBytes : kSmallBytes);
  if (bytes < 0) bytes = ::fcntl(ends[1], F_GETPIPE_SZ);
  Pipe pipe(ends[0], ends[1], bytes < 0 ? 0 : static_cast<std::size_t>(bytes), alive_);
  if (bytes < kUsefulBytes) return {};
  return pipe;
}

void PipePool::take_back(Pipe pipe) {
  if (pipe && kept_.size() < kKept) kept_.push_back(std::move(pipe));
}

}  // namespace longhaul::flows
