// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/seal/smb1_leg.h"

#include <cstring>

#include "codecs/little_endian.h"
#include "proxy/modules/smb/smb1/connection.h"

namespace longhaul::smb::seal {

namespace {

constexpr std::size_t kSmb1FrontBytes = kFrameHeadBytes + smb1::kHeaderBytes;
// Between the halves, instead of the signature: this response has the number of the first of several
// requests.
constexpr std::byte kOfFirst{1};

// [MS-CIFS] 2.2.4.47, 2.2.4.34, 2.2.4.63: more of a transaction, with its PID and MID.
bool is_secondary(smb1::Command command) {
  return command == smb1::Command::transaction_secondary || command == smb1::Command::trans2_secondary ||
         command == smb1::Command::nt_transact_secondary;
}

// [MS-CIFS] 3.3.4.2: servers do not sign unsolicited messages, the breaks of oplocks.
bool is_break(const smb1::Header& header) {
  return !header.is_reply() && header.command == smb1::Command::locking_andx && header.mid == smb1::kBreakMid;
}

void clear_signature(std::byte* header) {
  store_le(header + smb1_at::flags2,
           static_cast<std::uint16_t>(load_le<std::uint16_t>({header, smb1::kHeaderBytes}, smb1_at::flags2) &
                                      ~smb1::kSigned));
  std::memset(header + smb1_at::signature, 0, sizeof(Smb1Signature));
}

}  // namespace

void Smb1Leg::begin(MessageNumber login, Bytes key) {
  signer_.emplace(key);
  asked_.insert_or_assign(login, Request{.number = 0});
}

// 3.1.4.1: a request and its response have one number each; CANCEL has no response.
std::optional<std::uint32_t> Smb1Leg::count(const smb1::Header& request) {
  const std::uint32_t number = next_;
  if (request.command == smb1::Command::nt_cancel) {
    next_ += 1;
    return number;
  }
  next_ += 2;
  if (asked_.size() >= kMostRequests) return std::nullopt;
  Request& known = asked_[smb1::number_of(request)];
  const auto first =
      is_secondary(request.command) ? std::optional(known.first.value_or(known.number)) : std::nullopt;
  known = {.number = number, .first = first};
  return number;
}

Smb1Leg::Request* Smb1Leg::find(const smb1::Header& answer) {
  const auto found = asked_.find(smb1::number_of(answer));
  return found == asked_.end() ? nullptr : &found->second;
}

void Smb1Leg::answered(const smb1::Header& answer, Request& request) {
  if (request.answered) return;
  request.answered = true;
  answered_.push_back(smb1::number_of(answer));
  if (answered_.size() <= kMostAnswered) return;
  // Its PID and MID may have been reused by another request.
  if (const auto oldest = asked_.find(answered_.front()); oldest != asked_.end() && oldest->second.answered)
    asked_.erase(oldest);
  answered_.pop_front();
}

Result<Frame> Smb1Leg::open(const Frame& frame) {
  if (!signer_ || is_session_packet(frame.kind)) return frame;
  if (frame.kind != FrameKind::smb1) return Error::unprotected;
  const auto header = smb1::parse_header(frame.message());
  if (!header) return Error::forged;
  std::byte* memory = nullptr;
  Frame opened{FrameKind::smb1, Slice::unfilled(frame.bytes.size(), memory)};
  std::memcpy(memory, frame.bytes.bytes().data(), frame.bytes.size());
  std::byte* const at = memory + kFrameHeadBytes;
  const bool from_client = to_ == To::client;
  if (header->is_reply() == from_client) {
    if (from_client || !is_break(*header)) return Error::forged;
    clear_signature(at);
    return opened;
  }
  const auto wrong = [&]() -> Result<Frame> {
    return header->is_signed() ? Error::forged : Error::unprotected;
  };
  bool of_first = false;
  if (from_client) {
    const auto number = count(*header);
    if (!number || !signer_->verify(*number, frame.message())) return wrong();
  } else {
    Request* const request = find(*header);
    if (!request) return Error::forged;
    if (!signer_->verify(request->number + 1, frame.message())) {
      of_first = request->first && signer_->verify(*request->first + 1, frame.message());
      if (!of_first) return wrong();
    }
    answered(*header, *request);
  }
  clear_signature(at);
  if (of_first) at[smb1_at::signature] = kOfFirst;
  return opened;
}

Result<void> Smb1Leg::seal(Slice bytes, std::vector<Slice>& out) {
  if (!signer_) {
    out.push_back(std::move(bytes));
    return {};
  }
  gathered_.push(std::move(bytes));
  while (auto frame = gathered_.next())
    if (auto sealed = seal_frame(*std::move(frame), out); !sealed) return sealed;
  return {};
}

Result<std::uint32_t> Smb1Leg::number_for(const smb1::Header& header, Bytes marked) {
  if (to_ == To::server) {
    const auto number = count(header);
    return number ? Result<std::uint32_t>(*number) : Error::unprotected;
  }
  Request* const request = find(header);
  if (!request) return Error::unprotected;
  answered(header, *request);
  const bool of_first = marked[smb1_at::signature] == kOfFirst && request->first;
  return (of_first ? *request->first : request->number) + 1;
}

Result<void> Smb1Leg::seal_frame(Gathered::Whole frame, std::vector<Slice>& out) {
  const auto pass = [&]() -> Result<void> {
    for (Slice& piece : frame.pieces) out.push_back(std::move(piece));
    return {};
  };
  if (frame.size < kSmb1FrontBytes) return pass();
  std::byte* const at = split_front(frame.pieces, kSmb1FrontBytes) + kFrameHeadBytes;
  const Bytes bytes(at, smb1::kHeaderBytes);
  const auto header = smb1::parse_header(bytes);
  if (!header || (to_ == To::client && is_break(*header))) return pass();
  const auto number = number_for(*header, bytes);
  if (!number) return number.error();
  store_le(at + smb1_at::flags2, static_cast<std::uint16_t>(header->flags2 | smb1::kSigned));
  std::vector<Bytes> rest;
  for (std::size_t i = 1; i < frame.pieces.size(); ++i) rest.push_back(frame.pieces[i].bytes());
  const Smb1Signature signature = signer_->sign(*number, bytes, rest);
  std::copy(signature.begin(), signature.end(), at + smb1_at::signature);
  return pass();
}

}  // namespace longhaul::smb::seal
