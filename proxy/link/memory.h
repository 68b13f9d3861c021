// SPDX-License-Identifier: Apache-2.0
// The memory limits of all links: data that peers may still send (granted credit), and data stored until
// peers acknowledge it. Both are sums over all streams of all sessions.
#pragma once
#include <algorithm>
#include <cassert>
#include <cstdint>

namespace longhaul::link {

// Plain bytes that peers may send. A stream's first `floor_bytes()` are taken from a part reserved for the
// maximum number of streams, so that streams that use all of their credit can never block another one.
class CreditPool {
 public:
  static constexpr std::uint64_t kMaxInitial = 16ull << 20;
  static constexpr std::uint64_t kMaxFloor = 16ull << 10;

  // `sessions`: how many sessions share the pool.
  CreditPool(std::uint64_t cap_bytes, std::uint32_t max_streams, std::uint32_t sessions = 1)
      : max_streams_(max_streams),
        sessions_(std::max<std::uint32_t>(sessions, 1)),
        floor_(std::min(kMaxFloor, cap_bytes / 4 / std::max<std::uint32_t>(max_streams, 1))),
        shared_(cap_bytes - floor_ * max_streams),
        free_(shared_) {}

  // The number of peers has changed.
  void share_among(std::uint32_t sessions) { sessions_ = std::max<std::uint32_t>(sessions, 1); }

  std::uint64_t floor_bytes() const { return floor_; }
  std::uint64_t free_bytes() const { return free_; }
  std::uint64_t granted_bytes() const { return shared_ - free_; }  // above the floors
  // Larger while nearly all is free: it decides for how many round trips a transfer waits for its credit.
  std::uint64_t initial_share() const {
    return std::min(kMaxInitial, free_ > shared_ / 8 * 5 ? free_ / 8 : free_ / 16);
  }
  // How much more a stream may be granted at once.
  std::uint64_t growth_share() const { return under_pressure() ? free_ / 4 : free_ / 2; }
  // One session's reserve for streams that its peer has yet to open; `ahead` bytes of it are reserved
  // already. A reserve cannot be taken back, so all sessions together never reserve more than a quarter.
  std::uint64_t open_share(std::uint64_t ahead) const {
    return std::min((free_ + ahead) / 4, shared_ / 4 / sessions_);
  }
  bool under_pressure() const { return free_ < shared_ / 2; }
  // Whether practically nothing is left for another stream, and for more than a moment: unread bytes hold the
  // memory. (Many streams may be granted credit at once, which is then reclaimed.) The state lasts until
  // twice as much is free again, so that it does not change with every flow.
  bool used_up() const { return used_up_; }
  std::uint64_t cap_bytes() const { return shared_ + floor_ * max_streams_; }

  // Every stream with credit holds one of the floors; with none left, the cap would be exceeded.
  void enter() { ++streams_; }
  void leave() {
    assert(streams_ > 0);
    --streams_;
  }
  bool full() const { return streams_ >= max_streams_; }

  void take(std::uint64_t bytes) {
    assert(bytes <= free_);
    free_ -= bytes;
    review();
  }
  void give(std::uint64_t bytes) {
    free_ += bytes;
    assert(free_ <= shared_);
    review();
  }

  // Granted bytes that have arrived and that no reader has consumed yet.
  void arrived(std::uint64_t bytes) {
    unread_ += bytes;
    review();
  }
  void taken(std::uint64_t bytes) {
    assert(bytes <= unread_);
    unread_ -= bytes;
    review();
  }
  std::uint64_t unread_bytes() const { return unread_; }

 private:
  static constexpr std::uint64_t kRoom = 1ull << 20;  // with this much free, a new stream would get 64 KiB

  void review() {
    const std::uint64_t room = std::min(kRoom, shared_ / 8);
    if (used_up_) {
      used_up_ = free_ < 2 * room && unread_ >= granted_bytes() / 4;
    } else {
      used_up_ = free_ < room && unread_ >= granted_bytes() / 2;
    }
  }
  std::uint32_t max_streams_;
  std::uint32_t sessions_;
  std::uint32_t streams_ = 0;
  std::uint64_t floor_;
  std::uint64_t shared_;
  std::uint64_t free_;
  std::uint64_t unread_ = 0;
  bool used_up_ = false;
};

// Wire bytes stored for streams until the peer acknowledges them.
class RetainedBudget {
 public:
  explicit RetainedBudget(std::uint64_t cap_bytes) : cap_(cap_bytes) {}

  // What a stream that stores `held` bytes may add now: a quarter of the free part, and always something for
  // a stream that stores little, so that a few large flows cannot block small ones.
  std::uint64_t allowance(std::uint64_t held) const {
    std::uint64_t fair = used_ < cap_ ? (cap_ - used_) / 4 : 0;
    std::uint64_t least = held < kLeast ? kLeast - held : 0;
    return std::max(fair, least);
  }
  void add(std::uint64_t bytes) { used_ += bytes; }
  void remove(std::uint64_t bytes) {
    assert(bytes <= used_);
    used_ -= bytes;
  }
  std::uint64_t used_bytes() const { return used_; }
  // Whether another stream would get less than 64 KiB.
  bool used_up() const { return used_ + std::min(kRoom, cap_ / 16) > cap_; }

 private:
  static constexpr std::uint64_t kLeast = 4096;
  static constexpr std::uint64_t kRoom = 256ull << 10;
  std::uint64_t cap_;
  std::uint64_t used_ = 0;
};

// One session's part of the budget, counted as it changes: there may be 100,000 streams.
class RetainedShare {
 public:
  explicit RetainedShare(RetainedBudget& all) : all_(all) {}
  ~RetainedShare() { assert(bytes_ == 0); }
  RetainedShare(const RetainedShare&) = delete;
  RetainedShare& operator=(const RetainedShare&) = delete;

  std::uint64_t allowance(std::uint64_t held) const { return all_.allowance(held); }
  void add(std::uint64_t bytes) {
    all_.add(bytes);
    bytes_ += bytes;
  }
  void remove(std::uint64_t bytes) {
    assert(bytes <= bytes_);
    all_.remove(bytes);
    bytes_ -= bytes;
  }
  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t bytes_of_all() const { return all_.used_bytes(); }

 private:
  RetainedBudget& all_;
  std::uint64_t bytes_ = 0;
};

}  // namespace longhaul::link
