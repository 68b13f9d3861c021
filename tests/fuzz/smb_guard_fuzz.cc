// SPDX-License-Identifier: Apache-2.0
// Recorded sessions, and anything else, through the guard of flows that bypass the link. Inputs are those of
// smb_session: a byte of options, then pieces with their side, length and bytes. Writes are taken to be lost
// of every file that the client opens in the input. However the pieces are cut, the same comes out, until the
// guard has the connection reset; without a loss, what went in.
#include <algorithm>

#include "codecs/little_endian.h"
#include "fuzz/choices.h"
#include "fuzz/target.h"
#include "proxy/modules/smb/guard.h"
#include "proxy/modules/smb/lost_names.h"
#include "proxy/modules/smb/smb2/connection.h"

namespace longhaul::fuzz::smb_guard_target {
using namespace longhaul::smb;

namespace {

constexpr unsigned kServers = 1;
constexpr std::size_t kMostFiles = 16;

struct Piece {
  bool is_servers = false;
  Bytes bytes;
};

struct Input {
  LostWrites::Ends ends{.client = {std::byte{1}}, .server = {std::byte{2}}};
  std::vector<Piece> pieces;
  std::vector<std::u16string> shares, paths;
};

void learn(Input& input, const Frame& frame) {
  if (frame.kind == FrameKind::smb1) {
    const auto message = smb1::parse_message(frame.message());
    if (!message) return;
    for (const smb1::Block& block : message->blocks) {
      const bool unicode = message->header.is_unicode();
      if (const auto connect = smb1::parse_tree_connect_request(block, message->header);
          connect && block.command == smb1::Command::tree_connect_andx)
        input.shares.push_back(share_of(smb1::file_name(0, connect->path, unicode).path));
      if (const auto create = smb1::parse_nt_create_request(block, message->header);
          create && block.command == smb1::Command::nt_create_andx)
        input.paths.push_back(file_named({}, {}, smb1::file_name(0, create->name, unicode).spelled).path);
    }
  }
  if (frame.kind != FrameKind::smb2) return;
  const auto elements = smb2::parse_elements(frame.message());
  if (!elements) return;
  for (const smb2::Element& element : *elements) {
    if (const auto connect = smb2::parse_tree_connect_request(element.bytes);
        connect && element.header.command == smb2::Command::tree_connect) {
      std::u16string path;
      for (std::size_t i = 0; i + 2 <= connect->path.size(); i += 2)
        path.push_back(load_le<char16_t>(connect->path, i));
      input.shares.push_back(share_of(path));
    }
    if (const auto create = smb2::parse_create_request(element.bytes);
        create && element.header.command == smb2::Command::create)
      input.paths.push_back(file_named({}, {}, smb2::name_in(*create)).path);
  }
}

Input read(Bytes bytes) {
  Choices choices(bytes);
  Input input;
  input.ends.server_port = choices.byte() & 1 ? 139 : 445;
  while (!choices.empty()) {
    const unsigned kind = choices.byte();
    const std::size_t high = choices.byte(), low = choices.byte();
    input.pieces.push_back({(kind & kServers) != 0, choices.exactly(high << 8 | low)});
  }
  FrameSplitter splitter(framing_of_port(input.ends.server_port));
  for (const Piece& piece : input.pieces)
    if (!piece.is_servers) splitter.push(Slice::copy_of(piece.bytes));
  while (input.paths.size() < kMostFiles && input.shares.size() < kMostFiles) {
    const auto next = splitter.next();
    if (!next || !*next) break;
    learn(input, **next);
  }
  return input;
}

struct Result {
  std::string to_client, to_server;
  bool operator==(const Result&) const = default;
};

Result pass_through(const Input& input, std::size_t piece_bytes, bool with_losses) {
  const auto lost = std::make_shared<LostWrites>();
  for (const std::u16string& share : input.shares)
    for (const std::u16string& path : input.paths)
      if (with_losses) lost->add({.ends = input.ends, .share = share, .path = path}, {});
  const std::size_t losses = lost->waiting();
  smb::Guard guard(input.ends, lost);
  Result result;
  const auto collect = [&](const modules::Guard::Out& out) {
    for (const Slice& slice : out.to_client) result.to_client += as_text(slice.bytes());
    for (const Slice& slice : out.to_server) result.to_server += as_text(slice.bytes());
  };
  for (const Piece& piece : input.pieces) {
    for (Bytes rest = piece.bytes; !rest.empty();) {
      const Slice part = Slice::copy_of(rest.first(std::min(piece_bytes, rest.size())));
      rest = rest.subspan(part.size());
      const bool was_done = guard.is_done();
      modules::Guard::Out out;
      piece.is_servers ? guard.from_server(part, out) : guard.from_client(part, out);
      collect(out);
      if (out.reset) {
        // The records stay for a while: later connections are reset as well.
        require(lost->events().counters().reported[static_cast<std::size_t>(promises::Told::reset)] > 0);
        return result;
      }
      require(!was_done || (guard.is_done() && guard.held_bytes() == 0));
    }
  }
  modules::Guard::Out out;
  guard.client_ended(out);
  guard.server_ended(out);
  collect(out);
  require(guard.is_done() && guard.held_bytes() == 0);
  require(lost->waiting() <= losses);
  return result;
}

}  // namespace

FUZZ_TARGET(smb_guard) {
  const Input input = read(std::as_bytes(std::span(data, size)));
  Result plain;
  for (const Piece& piece : input.pieces)
    (piece.is_servers ? plain.to_client : plain.to_server) += as_text(piece.bytes);
  require(pass_through(input, ~std::size_t{0}, false) == plain);
  const Result whole = pass_through(input, ~std::size_t{0}, true);
  const std::size_t cut = size == 0 ? 1 : 1 + data[0] / 2;
  require(pass_through(input, cut, true) == whole);
  return 0;
}

}  // namespace longhaul::fuzz::smb_guard_target
