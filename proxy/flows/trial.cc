// SPDX-License-Identifier: Apache-2.0
#include "proxy/flows/trial.h"

namespace longhaul::flows {
namespace {

void append_front(Buffer& to, const SliceQueue& queue, std::size_t bytes) {
  queue.visit({queue.begin_offset(), queue.begin_offset() + bytes}, [&](Bytes piece) {
    append(to, piece);
    return true;
  });
}

}  // namespace

bool Trial::may_say(const SliceQueue& queue) const {
  if (said_.size() + queue.size() > kMostBytes) return false;
  Buffer all = said_;
  append_front(all, queue, queue.size());
  return rule_.may_repeat(all);
}

void Trial::said(const SliceQueue& queue, std::size_t bytes) {
  append_front(said_, queue, bytes);
  counted_.set(said_.capacity());
}

}  // namespace longhaul::flows
