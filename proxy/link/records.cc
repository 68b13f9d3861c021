// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/records.h"

#include <algorithm>

namespace longhaul::link {
namespace {

namespace ip = boost::asio::ip;

enum AddressKind : std::uint8_t { kNoAddress = 0, kIpv4 = 4, kIpv6 = 6, kName = 1 };
constexpr std::size_t kMaxNameBytes = 255;  // RFC 1035, section 2.3.4

// Features on the wire are (key, value) pairs; an unknown key is skipped, so that later versions may add new
// ones.
enum FeatureKey : std::uint64_t {
  kTransport = 1,
  kWindow,
  kFastConnect,
  kCompression,
  kDedupMemory,
  kDedupDisk,
  kFecMode,
  kFecSource,
  kFecRepair,
  // 10 to 18 were used by modules in releases without names for them.
  kPaths = 19,           // not written if automatic, as releases without it
  kFirstOfModules = 64,  // from here in the order of the sender's HELLO
};

template <class Array>
void write_array(const Array& array, Buffer& out) {
  ByteWriter(out).bytes(std::as_bytes(std::span(array)));
}

void write_address(const ip::address& address, Buffer& out) {
  ByteWriter(out).u8(address.is_v4() ? kIpv4 : kIpv6);
  if (address.is_v4()) return write_array(address.to_v4().to_bytes(), out);
  write_array(address.to_v6().to_bytes(), out);
}

template <class Array>
std::optional<Array> read_array(ByteReader& in) {
  auto bytes = in.bytes(std::tuple_size_v<Array>);
  if (!bytes) return std::nullopt;
  Array array;
  std::transform(bytes->begin(), bytes->end(), array.begin(),
                 [](std::byte b) { return std::to_integer<std::uint8_t>(b); });
  return array;
}

std::optional<ip::address> read_address(std::uint8_t kind, ByteReader& in) {
  if (kind == kIpv4) {
    auto bytes = read_array<ip::address_v4::bytes_type>(in);
    return bytes ? std::optional<ip::address>(ip::address_v4(*bytes)) : std::nullopt;
  }
  if (kind == kIpv6) {
    auto bytes = read_array<ip::address_v6::bytes_type>(in);
    return bytes ? std::optional<ip::address>(ip::address_v6(*bytes)) : std::nullopt;
  }
  return std::nullopt;
}

bool read_destination(ByteReader& in, Destination& destination) {
  auto kind = in.u8();
  if (!kind) return false;
  if (*kind == kName) {
    auto name = in.text();
    if (!name || name->empty() || name->size() > kMaxNameBytes) return false;
    destination.host = *name;
  } else {
    auto address = read_address(*kind, in);
    if (!address) return false;
    destination.address = *address;
  }
  // Port 0 and impossible names are a client's errors, not the peer's: dialling them fails.
  auto port = in.fixed16();
  if (!port) return false;
  destination.port = *port;
  return true;
}

bool read_client(ByteReader& in, std::optional<TcpAddress>& client) {
  auto kind = in.u8();
  if (!kind) return false;
  if (*kind == kNoAddress) return true;
  auto address = read_address(*kind, in);
  auto port = in.fixed16();
  if (!address || !port) return false;
  client.emplace(*address, *port);
  return true;
}

}  // namespace

void write_record_head(RecordType type, std::size_t body_bytes, Buffer& out) {
  ByteWriter writer(out);
  writer.u8(static_cast<std::uint8_t>(type));
  writer.varint(body_bytes);
}

void write_features(const config::Features& features, Buffer& out) {
  ByteWriter writer(out);
  auto pair = [&](FeatureKey key, std::uint64_t value) {
    writer.varint(key);
    writer.varint(value);
  };
  pair(kTransport, static_cast<std::uint64_t>(features.transport));
  pair(kWindow, features.window_bytes);
  pair(kFastConnect, features.fast_connect);
  pair(kCompression, features.compression);
  pair(kDedupMemory, features.dedup_memory);
  pair(kDedupDisk, features.dedup_disk);
  pair(kFecMode, static_cast<std::uint64_t>(features.fec.mode));
  pair(kFecSource, features.fec.source_packets);
  pair(kFecRepair, features.fec.repair_packets);
  if (features.paths != config::PathUse::automatic) pair(kPaths, static_cast<std::uint64_t>(features.paths));
  const std::size_t rows = features.modules.table().rows().size();
  for (std::size_t row = 0; row < rows; ++row)
    pair(static_cast<FeatureKey>(kFirstOfModules + row), features.modules[row]);
}

FeatureKeys::FeatureKeys(const config::FeatureTable& own, std::span<const std::string> names) : own_(&own) {
  for (const std::string& name : names.first(std::min(names.size(), kMaxFeatureNames))) {
    const auto row = own.find(name);
    rows_.push_back(row ? std::optional(static_cast<std::uint8_t>(*row)) : std::nullopt);
  }
}

std::optional<std::size_t> FeatureKeys::row_of(std::uint64_t key) const {
  if (key < kFirstOfModules || key - kFirstOfModules >= rows_.size()) return std::nullopt;
  const auto row = rows_[static_cast<std::size_t>(key - kFirstOfModules)];
  return row ? std::optional<std::size_t>(*row) : std::nullopt;
}

config::ModuleFeatures FeatureKeys::standard() const {
  config::ModuleFeatures features = none();
  for (const auto row : rows_)
    if (row) features.set(*row, own_->rows()[*row].standard);
  return features;
}

Result<config::Features> parse_features(Bytes body, const FeatureKeys& keys) {
  config::Features features;
  features.modules = keys.none();
  ByteReader in(body);
  while (in.remaining()) {
    auto key = in.varint(), value = in.varint();
    if (!key || !value) return LinkError::malformed_record;
    bool on = *value != 0;
    switch (*key) {
      case kTransport:
        if (*value > static_cast<std::uint64_t>(config::Transport::off)) return LinkError::malformed_record;
        features.transport = static_cast<config::Transport>(*value);
        break;
      case kWindow:
        if (*value > UINT32_MAX) return LinkError::malformed_record;
        features.window_bytes = static_cast<std::uint32_t>(*value);
        break;
      case kFecMode:
        if (*value > static_cast<std::uint64_t>(config::Fec::Mode::fixed)) return LinkError::malformed_record;
        features.fec.mode = static_cast<config::Fec::Mode>(*value);
        break;
      case kFecSource:
      case kFecRepair:
        if (*value > 255) return LinkError::malformed_record;
        (*key == kFecSource ? features.fec.source_packets : features.fec.repair_packets) =
            static_cast<std::uint8_t>(*value);
        break;
      case kPaths:
        // For a policy of a later release, this side's own is used.
        if (*value <= static_cast<std::uint64_t>(config::PathUse::failover))
          features.paths = static_cast<config::PathUse>(*value);
        break;
      case kFastConnect:
        features.fast_connect = on;
        break;
      case kCompression:
        features.compression = on;
        break;
      case kDedupMemory:
        features.dedup_memory = on;
        break;
      case kDedupDisk:
        features.dedup_disk = on;
        break;
      default:
        if (const auto row = keys.row_of(*key)) {
          // A later release may allow more than this one supports.
          const std::uint64_t most = features.modules.table().rows()[*row].values.size() - 1;
          features.modules.set(*row, static_cast<std::uint8_t>(std::min(*value, most)));
        }
        break;
    }
  }
  return features;
}

void write_open(const OpenRequest& request, Buffer& out) {
  ByteWriter writer(out);
  if (!request.destination.host.empty()) {
    writer.u8(kName);
    writer.text(request.destination.host);
  } else {
    write_address(request.destination.address, out);
  }
  writer.fixed16(request.destination.port);
  if (request.client) {
    write_address(request.client->address(), out);
    writer.fixed16(request.client->port());
  } else {
    writer.u8(kNoAddress);
  }
  writer.u8(static_cast<std::uint8_t>(request.source));
  writer.varint(request.forward_credit);
  writer.varint(request.reverse_credit);
  writer.text(request.module);
  writer.varint(request.module_version);
  Buffer features;
  write_features(request.features, features);
  writer.sized(features);
}

Result<OpenRequest> parse_open(Bytes body, const FeatureKeys& keys) {
  ByteReader in(body);
  OpenRequest request;
  if (!read_destination(in, request.destination)) return LinkError::malformed_record;
  if (!read_client(in, request.client)) return LinkError::malformed_record;
  auto source = in.u8();
  auto forward = in.varint(), reverse = in.varint();
  auto module = in.text();
  auto version = in.varint();
  auto features = in.sized();
  if (!source || *source > static_cast<std::uint8_t>(config::Source::proxy) || !forward || !reverse ||
      !module || module->size() > kMaxModuleNameBytes || !version || !features)
    return LinkError::malformed_record;
  auto parsed = parse_features(*features, keys);
  if (!parsed) return parsed.error();
  request.source = static_cast<config::Source>(*source);
  request.forward_credit = *forward;
  request.reverse_credit = *reverse;
  request.module = *module;
  request.module_version = *version;
  request.features = *parsed;
  return request;  // fields of later versions are skipped
}

void write_answer(const OpenAnswer& answer, Buffer& out) {
  ByteWriter writer(out);
  writer.u8(static_cast<std::uint8_t>(answer.outcome));
  writer.u8(static_cast<std::uint8_t>(answer.source_fallback | answer.module_accepted << 1));
}

Result<OpenAnswer> parse_answer(Bytes body) {
  ByteReader in(body);
  auto outcome = in.u8(), flags = in.u8();
  if (!outcome || !flags) return LinkError::malformed_record;
  OpenAnswer answer;
  bool known = *outcome <= static_cast<std::uint8_t>(ConnectOutcome::client_not_allowed);
  answer.outcome = known ? static_cast<ConnectOutcome>(*outcome) : ConnectOutcome::failed;
  answer.source_fallback = *flags & 1;
  answer.module_accepted = *flags & 2;
  return answer;
}

void write_block_header(const BlockHeader& header, Buffer& out) {
  ByteWriter writer(out);
  writer.u8(header.codec);
  writer.varint(header.plain_bytes);
  writer.fixed64(header.checksum);
  writer.varint(header.ring_offset);
}

Result<ParsedBlock> parse_block(Bytes body) {
  ByteReader in(body);
  auto codec = in.u8();
  auto plain = in.varint();
  auto checksum = in.fixed64();
  auto ring = in.varint();
  if (!codec || !plain || *plain == 0 || *plain > kMaxBlockPlainBytes || !checksum || !ring)
    return LinkError::malformed_record;
  return ParsedBlock{{*codec, static_cast<std::uint32_t>(*plain), *checksum, *ring}, in.rest()};
}

}  // namespace longhaul::link
