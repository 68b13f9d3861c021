// SPDX-License-Identifier: Apache-2.0
// Connects error correction with packets: which packets become symbols, the contents of a symbol, which
// repairs are sent, and which packets they restore. fec/ has the codes and determines the number of repairs.
#pragma once
#include <array>
#include <deque>
#include <memory>

#include "fec/controller.h"
#include "fec/window_decoder.h"
#include "fec/window_encoder.h"
#include "proxy/config/features.h"
#include "proxy/link/udp/carrier_frames.h"

namespace longhaul::link::udp {

fec::Mode mode_of(const config::Fec& fec);

// A symbol consists of the low half of its packet's number and the frames after the SYMBOL frame, so that a
// restored packet can be reported to its sender.
class PacketFec {
 public:
  // ---- sending
  // The symbol frame for the next packet, or nullopt if it is not to be a symbol; to be called before the
  // packet is made.
  std::optional<SymbolFrame> next_symbol(bool interactive, fec::Mode mode) const;
  void add_symbol(fec::Class of, PacketNumber number, Bytes frames);
  void on_sent(std::optional<fec::Class> symbol, fec::Mode mode, TimePoint now) {
    controller_.on_sent(now, symbol, mode);
  }
  void on_report(const fec::LossReport& report, Duration smoothed_rtt, TimePoint now) {
    controller_.on_report(now, report, smoothed_rtt);
  }
  void on_quiet(TimePoint now) { controller_.on_quiet(now); }
  // The next repair to be sent now; its bytes are valid until the next call.
  std::optional<RepairFrame> next_repair(TimePoint now);
  // The repair did not fit: it becomes the next one again.
  void put_back(const RepairFrame& repair) { ready_.push_front(repair); }
  bool repairs_ready() const { return !ready_.empty(); }
  std::optional<TimePoint> next_timeout() const { return controller_.next_timeout(); }
  double erasure_rate() const { return controller_.erasure_rate(); }

  // ---- receiving
  struct Restored {
    PacketNumber number;
    Bytes frames;  // valid until the next on_symbol() or on_repair()
  };
  void on_symbol(const SymbolFrame& symbol, PacketNumber number, Bytes frames);
  void on_repair(const RepairFrame& repair);
  // `expected`: approximately the highest number received.
  std::optional<Restored> poll_restored(PacketNumber expected);
  fec::WindowDecoder::Counters counters() const;  // sum of all classes

 private:
  fec::WindowEncoder& encoder(fec::Class of);
  fec::WindowDecoder& decoder(fec::Class of);

  fec::Controller controller_;
  // Created on first use: a path without loss has none.
  std::array<std::unique_ptr<fec::WindowEncoder>, fec::kClasses> encoders_;
  std::array<std::unique_ptr<fec::WindowDecoder>, fec::kClasses> decoders_;
  std::deque<RepairFrame> ready_;
};

}  // namespace longhaul::link::udp
