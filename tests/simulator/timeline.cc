// SPDX-License-Identifier: Apache-2.0
// A binary heap of timers that know their places, so that moving a deadline costs no search, and a map of
// actions.
#include "tests/simulator/timeline.h"

#include <algorithm>

namespace longhaul::simulator {

Timer::Timer(Timeline& timeline) : timeline_(timeline), order_(timeline.timers_made_++) {}
Timer::~Timer() { timeline_.remove(*this); }

void Timeline::sift_up(std::size_t place) {
  Timer* timer = heap_[place];
  while (place > 0) {
    const std::size_t parent = (place - 1) / 2;
    if (!before(*timer, *heap_[parent])) break;
    heap_[place] = heap_[parent];
    heap_[place]->place_ = place;
    place = parent;
  }
  heap_[place] = timer;
  timer->place_ = place;
}

void Timeline::sift_down(std::size_t place) {
  Timer* timer = heap_[place];
  for (;;) {
    std::size_t child = 2 * place + 1;
    if (child >= heap_.size()) break;
    if (child + 1 < heap_.size() && before(*heap_[child + 1], *heap_[child])) ++child;
    if (!before(*heap_[child], *timer)) break;
    heap_[place] = heap_[child];
    heap_[place]->place_ = place;
    place = child;
  }
  heap_[place] = timer;
  timer->place_ = place;
}

void Timeline::remove(Timer& timer) {
  if (timer.place_ == Timer::kNowhere) return;
  const std::size_t place = timer.place_;
  timer.place_ = Timer::kNowhere;
  Timer* last = heap_.back();
  heap_.pop_back();
  if (last == &timer) return;
  heap_[place] = last;
  last->place_ = place;
  sift_up(place);
  sift_down(last->place_);
}

void Timeline::set(Timer& timer, std::optional<TimePoint> at) {
  if (!at) return remove(timer);
  const TimePoint when = std::max(*at, now_);
  if (timer.place_ == Timer::kNowhere) {
    timer.at_ = when;
    heap_.push_back(&timer);
    sift_up(heap_.size() - 1);
    return;
  }
  if (when == timer.at_) return;
  const bool sooner = when < timer.at_;
  timer.at_ = when;
  if (sooner)
    sift_up(timer.place_);
  else
    sift_down(timer.place_);
}

void Timeline::at(TimePoint when, std::function<void()> action) {
  actions_.emplace(std::max(when, now_), std::move(action));
}

void Timeline::every(Duration period, std::function<void()> action) {
  after(period, [this, period, action = std::move(action)]() mutable {
    action();
    every(period, std::move(action));
  });
}

std::optional<TimePoint> Timeline::next() const {
  std::optional<TimePoint> next;
  if (!heap_.empty()) next = heap_.front()->at_;
  if (!actions_.empty()) next = next ? std::min(*next, actions_.begin()->first) : actions_.begin()->first;
  return next;
}

bool Timeline::advance(TimePoint end) {
  const auto when = next();
  if (!when || *when > end) return false;
  now_ = *when;
  ++events_;
  if (!actions_.empty() && actions_.begin()->first == now_) {
    auto action = actions_.extract(actions_.begin());
    action.mapped()();
    return true;
  }
  Timer& timer = *heap_.front();
  remove(timer);
  timer.fire(now_);
  return true;
}

void Timeline::run_until(TimePoint end) {
  while (advance(end)) {
  }
  now_ = std::max(now_, end);
}

bool Timeline::run_until(const std::function<bool()>& done, Duration patience, Duration step) {
  const TimePoint end = now_ + patience;
  while (!done()) {
    if (now_ >= end) return false;
    run_until(std::min(end, now_ + step));
  }
  return true;
}

}  // namespace longhaul::simulator
