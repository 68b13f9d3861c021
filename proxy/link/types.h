// SPDX-License-Identifier: Apache-2.0
// The named integer types of the link, which cannot be confused, and the protocol errors.
#pragma once
#include <chrono>
#include <compare>
#include <cstdint>
#include <string>

#include "codecs/result.h"

namespace longhaul::link {

using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;
using Duration = Clock::duration;

// If a timer comes later than this, the process did not run meanwhile: it had no processor, or was stopped.
// Nothing is concluded from what it did not hear in that time.
inline constexpr Duration kStall = std::chrono::milliseconds(100);

// Of application modules, in HELLO and OPEN.
inline constexpr std::size_t kMaxModuleNameBytes = 32;
inline constexpr std::size_t kMaxFeatureNames = 64;

// A number that names something of one kind: it is compared and counted up, and cannot be taken for a number
// of another kind, nor for a size.
template <class Kind, class Number>
class Id {
 public:
  constexpr Id() = default;
  constexpr explicit Id(Number number) : number_(number) {}

  constexpr Number number() const { return number_; }
  constexpr Id& operator++() { return ++number_, *this; }
  friend constexpr auto operator<=>(const Id&, const Id&) = default;

 private:
  Number number_ = 0;
};

// A place in a sequence that counts up. Two places have a distance; a place cannot be taken for a place in
// another sequence, nor for a distance.
template <class Kind>
class Position {
 public:
  constexpr Position() = default;
  constexpr explicit Position(std::uint64_t number) : number_(number) {}

  constexpr std::uint64_t number() const { return number_; }
  constexpr Position& operator++() { return ++number_, *this; }
  constexpr Position& operator+=(std::uint64_t distance) { return number_ += distance, *this; }
  friend constexpr Position operator+(Position from, std::uint64_t distance) { return from += distance; }
  friend constexpr Position operator-(Position from, std::uint64_t distance) {
    return Position(from.number_ - distance);
  }
  friend constexpr std::uint64_t operator-(Position end, Position from) { return end.number_ - from.number_; }
  friend constexpr auto operator<=>(const Position&, const Position&) = default;

 private:
  std::uint64_t number_ = 0;
};

// Streams that the dialling side opens have odd numbers, the accepting side's even ones; 0 is the control
// stream.
using StreamId = Id<struct StreamKind, std::uint64_t>;
inline constexpr StreamId kControlStream{};

// A place in the wire bytes of one direction of a stream; from 0 on. Plain bytes, and credit for them, are
// counted in ordinary numbers.
using StreamOffset = Position<struct StreamOffsetKind>;

// A carrier within one session; counts up, never used twice.
using CarrierId = Id<struct CarrierKind, std::uint32_t>;
inline constexpr CarrierId kNoCarrier{};

enum class Side : std::uint8_t { dialler, acceptor };

// Why a stream was reset, in wire form.
enum class ResetCode : std::uint8_t {
  connection_reset = 0,  // the TCP connection of the flow was reset
  aborted = 1,           // a proxy gave up the flow: shutdown, or out of a resource
  undecodable = 2,       // a block could not be restored
  session_lost = 3,      // the session ended; never sent, only reported to the flow
  no_reader = 4,         // the sender's own direction has ended and stays valid; it no longer reads
};

// Errors that end a carrier: the peer, or equipment between, broke the protocol.
enum class LinkError {
  malformed_frame = 1,
  malformed_record,
  frame_too_large,
  credit_exceeded,
  too_fragmented,
  unknown_stream,
  too_many_streams,
  version_mismatch,
  control_overflow,
};

const boost::system::error_category& link_category();
inline boost::system::error_code make_error_code(LinkError error) {
  return {static_cast<int>(error), link_category()};
}

}  // namespace longhaul::link

template <>
struct boost::system::is_error_code_enum<longhaul::link::LinkError> : std::true_type {};
