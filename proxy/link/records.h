// SPDX-License-Identifier: Apache-2.0
// The records inside a stream's bytes (PROTOCOL.md, section 4): open, answer, raw data, blocks, module
// messages, features, end; and on the control stream the messages between the two sessions. record_parser.h
// splits a stream into records; decisions are in stream.h and session.h.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "codecs/block_codec.h"
#include "codecs/byte_reader.h"
#include "codecs/byte_writer.h"
#include "proxy/config/features.h"
#include "proxy/config/source.h"
#include "proxy/link/destination.h"
#include "proxy/link/endpoint.h"
#include "proxy/link/types.h"

namespace longhaul::link {

enum class RecordType : std::uint8_t {
  open = 0,        // first record of the opener's direction
  answer = 1,      // first record of the other direction
  data = 2,        // raw bytes
  block = 3,       // encoded bytes with a header
  module = 4,      // a message between the twins of a module, at this position of the stream
  end = 5,         // end of this direction; nothing follows
  abort = 6,       // the sender's TCP connection was reset after these bytes; nothing follows
  allowed = 7,     // control stream: the features that the sender allows
  dictionary = 8,  // control stream: a message between the twins of the block codec
  features = 9,    // control stream: the features of one stream from now on, both directions
};

// For BLOCK, MODULE and DICTIONARY. A DATA record may have any length.
inline constexpr std::size_t kMaxRecordBody = kMaxBlockPlainBytes + 4096;
// Limit of any other record: an unlimited one would let a peer that never ends it use memory.
inline constexpr std::size_t kMaxShortRecordBody = 4096;

// A module message uses credit for its body plus this overhead, because even an empty one takes memory.
inline constexpr std::size_t kMessageOverhead = 64;
constexpr std::size_t message_cost(std::size_t body_bytes) { return body_bytes + kMessageOverhead; }

// The peer's keys of module features: it has numbered their names in its HELLO. A key without a name, or with
// a name that this side does not support, is ignored.
class FeatureKeys {
 public:
  FeatureKeys() = default;  // this side has no modules
  // `names` is empty for a peer without modules, or of a release without such names.
  explicit FeatureKeys(const config::FeatureTable& own, std::span<const std::string> names = {});

  std::optional<std::size_t> row_of(std::uint64_t key) const;  // index in this side's table
  config::ModuleFeatures none() const { return config::ModuleFeatures(*own_); }
  // The standard values of the features that both sides support.
  config::ModuleFeatures standard() const;

 private:
  const config::FeatureTable* own_ = &config::ModuleFeatures().table();
  std::vector<std::optional<std::uint8_t>> rows_;  // indexed by the peer's numbers
};

// What the far side needs to start a flow.
struct OpenRequest {
  Destination destination;
  std::optional<TcpAddress> client;                   // as seen by the near side
  config::Source source = config::Source::automatic;  // the address that the server should see
  config::Features features;
  std::string module;  // the application module that both halves should run; empty: none
  std::uint64_t module_version = 0;
  std::uint64_t forward_credit = 0;  // plain bytes taken from the open credit for the opener's direction
  std::uint64_t reverse_credit = 0;  // plain bytes granted for the answering direction
};

struct OpenAnswer {
  ConnectOutcome outcome = ConnectOutcome::connected;
  bool source_fallback = false;  // the server sees the far proxy's own address
  bool module_accepted = false;  // both halves run the module, or neither does
};

void write_record_head(RecordType type, std::size_t body_bytes, Buffer& out);
void write_open(const OpenRequest& request, Buffer& out);  // body only, as all below
void write_answer(const OpenAnswer& answer, Buffer& out);
void write_features(const config::Features& features, Buffer& out);
void write_block_header(const BlockHeader& header, Buffer& out);

Result<OpenRequest> parse_open(Bytes body, const FeatureKeys& keys = {});
Result<OpenAnswer> parse_answer(Bytes body);
Result<config::Features> parse_features(Bytes body, const FeatureKeys& keys = {});
struct ParsedBlock {
  BlockHeader header;
  Bytes encoded;
};
Result<ParsedBlock> parse_block(Bytes body);

}  // namespace longhaul::link
