// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/packet_fec.h"

#include "codecs/byte_reader.h"
#include "codecs/work.h"
#include "proxy/link/udp/packet.h"

namespace longhaul::link::udp {

namespace {
constexpr std::size_t kNumberBytes = 4;

std::array<std::byte, kNumberBytes> low_bytes(PacketNumber number) {
  std::array<std::byte, kNumberBytes> bytes;
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = std::byte(low_bits(number) >> (24 - 8 * i) & 0xff);
  return bytes;
}
}  // namespace

fec::Mode mode_of(const config::Fec& fec) {
  using Kind = fec::Mode::Kind;
  switch (fec.mode) {
    case config::Fec::Mode::off:
      return {.kind = Kind::off};
    case config::Fec::Mode::adaptive:
      return {.kind = Kind::adaptive};
    case config::Fec::Mode::fixed:
      break;
  }
  return {.kind = Kind::fixed, .source_packets = fec.source_packets, .repair_packets = fec.repair_packets};
}

fec::WindowEncoder& PacketFec::encoder(fec::Class of) {
  auto& place = encoders_[fec::index_of(of)];
  if (!place) {
    // A tail of bulk data is a whole window of the line; other repairs cover only a few packets.
    fec::WindowEncoder::Options options;
    if (of == fec::Class::bulk) options.kept_symbols = fec::ControllerOptions{}.kept_symbols;
    place = std::make_unique<fec::WindowEncoder>(options);
  }
  return *place;
}

fec::WindowDecoder& PacketFec::decoder(fec::Class of) {
  auto& place = decoders_[fec::index_of(of)];
  if (!place) {
    fec::WindowDecoder::Options options;
    if (of == fec::Class::bulk) options.kept_symbols = fec::ControllerOptions{}.kept_symbols;
    place = std::make_unique<fec::WindowDecoder>(options);
  }
  return *place;
}

std::optional<SymbolFrame> PacketFec::next_symbol(bool interactive, fec::Mode mode) const {
  auto of = controller_.protects(interactive ? fec::Traffic::interactive : fec::Traffic::bulk, mode);
  if (!of) return std::nullopt;
  const auto& encoder = encoders_[fec::index_of(*of)];
  return SymbolFrame{*of, encoder ? encoder->next_id() : 0};
}

void PacketFec::add_symbol(fec::Class of, PacketNumber number, Bytes frames) {
  auto low = low_bytes(number);
  std::array<Bytes, 2> parts{low, frames};
  encoder(of).add(parts);
}

std::optional<RepairFrame> PacketFec::next_repair(TimePoint now) {
  while (ready_.empty()) {
    auto order = controller_.poll_order(now);
    if (!order) return std::nullopt;
    fec::WindowEncoder& source = encoder(order->of);
    fec::SymbolId end = source.next_id() - std::min<fec::SymbolId>(source.next_id(), order->skip);
    fec::SymbolId first = std::max(source.first_kept(), end - std::min<fec::SymbolId>(end, order->symbols));
    if (first >= end) continue;
    fec::Window window{first,
                       static_cast<std::uint32_t>(std::min<fec::SymbolId>(end - first, fec::kMaxWindow))};
    for (const fec::Repair& repair : source.repair(window, order->repairs))
      ready_.push_back({order->of, repair});
  }
  RepairFrame next = ready_.front();
  ready_.pop_front();
  return next;
}

void PacketFec::on_symbol(const SymbolFrame& symbol, PacketNumber number, Bytes frames) {
  thread_local Buffer joined;
  auto low = low_bytes(number);
  joined.clear();
  append(joined, low);
  append(joined, frames);
  decoder(symbol.of).on_source(symbol.id, joined);
}

void PacketFec::on_repair(const RepairFrame& repair) {
  // Known symbols of the window are subtracted from the repair, and the repair from the others that are held.
  count_work(std::uint64_t{repair.repair.window.count} * (fec::kMaxWindow + repair.repair.coded.size()) / 2);
  decoder(repair.of).on_repair(repair.repair);
}

std::optional<PacketFec::Restored> PacketFec::poll_restored(PacketNumber expected) {
  for (auto& decoder : decoders_) {
    if (!decoder) continue;
    auto restored = decoder->poll_restored();
    if (!restored || restored->payload.size() < kNumberBytes) continue;
    std::uint32_t low = 0;
    for (std::size_t i = 0; i < kNumberBytes; ++i)
      low = low << 8 | std::to_integer<std::uint32_t>(restored->payload[i]);
    return Restored{decode_packet_number(expected, low), restored->payload.subspan(kNumberBytes)};
  }
  return std::nullopt;
}

fec::WindowDecoder::Counters PacketFec::counters() const {
  fec::WindowDecoder::Counters sum;
  for (const auto& decoder : decoders_) {
    if (!decoder) continue;
    const auto& one = decoder->counters();
    sum.sources += one.sources;
    sum.repairs += one.repairs;
    sum.wasted += one.wasted;
    sum.late += one.late;
    sum.malformed += one.malformed;
    sum.recovered += one.recovered;
    sum.came_after += one.came_after;
  }
  return sum;
}

}  // namespace longhaul::link::udp
