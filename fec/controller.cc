// SPDX-License-Identifier: Apache-2.0
#include "fec/controller.h"

#include <algorithm>
#include <cmath>

#include "fec/redundancy.h"
#include "fec/symbol.h"

namespace longhaul::fec {
namespace {

using namespace std::chrono_literals;

// What an interactive flow is promised, with a margin for what the model leaves out (symbols.h's window,
// timers): of 100 messages one may be later than the deadline, of 1000 one later than a retransmission would
// be.
constexpr double kLate = 0.008, kVeryLate = 0.0007;
constexpr std::uint32_t kMostPerGroup = 16;
constexpr double kTailShortfall = 2e-3;     // per block: a block that fails costs a round trip
constexpr std::uint32_t kOrderRepairs = 6;  // at once; as many as ISA-L makes in one pass
constexpr double kBursty = 1.3;             // mean burst length from which repairs keep a distance
constexpr Duration kBurstTime = 3ms;        // distance enough, whatever was sent meanwhile
constexpr double kTailCreditCap = 4096;

double seconds(Duration d) { return std::chrono::duration<double>(d).count(); }

}  // namespace

Controller::Controller(ControllerOptions options)
    : options_(options), tail_credit_(options.tail_credit_packets) {}

std::optional<Class> Controller::protects(Traffic traffic, Mode mode) const {
  switch (mode.kind) {
    case Mode::Kind::off:
      return std::nullopt;
    case Mode::Kind::fixed:
      return Class::fixed;
    case Mode::Kind::adaptive:
      break;
  }
  if (loss_.rate() == 0) return std::nullopt;
  if (traffic == Traffic::bulk) return Class::bulk;
  return plan_.repairs > 0 ? std::optional(Class::interactive) : std::nullopt;
}

void Controller::on_sent(TimePoint now, std::optional<Class> symbol, Mode mode) {
  ++packets_;
  if (!symbol) return;
  ++counters_.symbols[index_of(*symbol)];
  switch (*symbol) {
    case Class::interactive:
      return on_interactive(now);
    case Class::bulk:
      return on_bulk(now);
    case Class::fixed:
      return on_fixed(now, mode);
  }
}

void Controller::on_report(TimePoint now, const LossReport& report, Duration smoothed_rtt) {
  loss_.add(now, report);
  smoothed_rtt_ = smoothed_rtt;
  make_plan();
}

// ---------------------------------------------------------------- interactive

void Controller::on_interactive(TimePoint now) {
  if (!interactive_sent_.empty()) {
    const Duration gap = std::min<Duration>(now - interactive_sent_.back(), 1s);
    if (gap > 1ms) {  // shorter ones are packets of one message
      spacing_ = spacing_ == Duration{} ? gap : spacing_ + (gap - spacing_) / 8;
      packets_between_ += (static_cast<double>(packets_ - last_interactive_packet_) - packets_between_) / 8;
    }
  }
  last_interactive_packet_ = packets_;
  interactive_sent_.push_back(now);
  if (interactive_sent_.size() > kMaxWindow) interactive_sent_.pop_front();

  Group& group = interactive_;
  group.after_packet = packets_;
  group.after = now;
  ++group.symbols;
  if (!group.due) group.due = now + options_.interactive_deadline - options_.slack;
  // Another message that comes before the deadline shares the repair; if none is expected, waiting gains
  // nothing.
  if (group.symbols >= plan_.group || spacing_ == Duration{} || now + spacing_ > *group.due)
    close_group(Class::interactive, now);
}

// The cheapest of a few groupings that keeps both promises. A group's symbol that is j messages old when the
// group's repairs leave, and is not restored by them, has another chance with every later group, whose
// windows reach back.
void Controller::make_plan() {
  const double rate = loss_.rate();
  plan_ = {};
  if (rate == 0) return;
  const double spacing = std::max(seconds(spacing_), 1e-3);
  const double deadline = seconds(options_.interactive_deadline);
  const double wait = seconds(options_.interactive_deadline - options_.slack);
  const double round_trip = std::max(seconds(smoothed_rtt_), 2e-3);
  const double burst = packets_between_ >= 2 * loss_.burst_length() ? 1 : loss_.burst_length();
  const auto largest = spacing_ == Duration{}
                           ? 1
                           : std::min<std::uint32_t>(32, 1 + static_cast<std::uint32_t>(wait / spacing));

  // Share of messages that are later than `limit`. Then they come with the next group or, at the latest,
  // again.
  const auto late = [&](std::uint32_t group, std::uint32_t repairs, double limit) {
    const double cadence = group * spacing;
    double sum = 0;
    for (std::uint32_t j = 0; j < group; ++j) {
      const double age = j * spacing;
      const auto chances = 1 + static_cast<std::uint32_t>(std::max(0.0, limit - age) / cadence);
      const double restored = std::min(age + chances * cadence, round_trip * 1.1 + 5e-3);
      const double behind = std::max(1.0, std::ceil((restored - limit) / spacing));  // wait with it, in order
      sum += shortfall(chances * group, chances * repairs, rate, burst) * behind;
    }
    return sum / group / group;
  };
  const auto good = [&](std::uint32_t group, std::uint32_t repairs) {
    return late(group, repairs, deadline) <= kLate && late(group, repairs, round_trip) <= kVeryLate;
  };
  if (round_trip * 1.1 + 5e-3 <= deadline || good(largest, 0)) return;  // sending again is soon enough
  double cheapest = 1e9;
  for (std::uint32_t group = largest; group > 0; group /= 2) {
    std::uint32_t repairs = 1;
    while (repairs < kMostPerGroup && !good(group, repairs)) ++repairs;
    if (const double cost = static_cast<double>(repairs) / group; cost <= cheapest) {
      cheapest = cost;
      plan_ = {group, repairs};
    }
  }
}

void Controller::close_group(Class of, TimePoint now) {
  Group& group = of == Class::interactive ? interactive_ : fixed_;
  if (of == Class::interactive) {
    group.ready = plan_.repairs;
  } else {
    const double whole = group.symbols >= fixed_mode_.source_packets ? std::floor(fixed_credit_ + 1e-9)
                                                                     : std::ceil(fixed_credit_ - 1e-9);
    group.ready += static_cast<std::uint32_t>(std::max(0.0, whole));
    fixed_credit_ -= std::max(0.0, whole);
  }
  group.symbols = 0;
  group.due.reset();
  group.after = now;
}

bool Controller::clear_of_burst(const Group& group, TimePoint now) const {
  const double burst = loss_.burst_length();
  return burst < kBursty || static_cast<double>(packets_ - group.after_packet) >= 2 * burst ||
         now >= group.after + kBurstTime;
}

// ---------------------------------------------------------------- bulk: its tails

void Controller::on_bulk(TimePoint now) {
  ++bulk_symbols_;
  tail_due_.reset();
  bulk_uncovered_.push_back(now);
  if (bulk_uncovered_.size() > options_.kept_symbols) bulk_uncovered_.pop_front();
  tail_credit_ = std::min(tail_credit_ + options_.bulk_overhead + loss_.rate(), kTailCreditCap);
}

void Controller::on_quiet(TimePoint now) {
  if (!bulk_uncovered_.empty() && !tail_due_) tail_due_ = now + options_.quiet;
  if (fixed_.symbols > 0 && fixed_.due) fixed_.due = std::min(*fixed_.due, now + options_.quiet);
}

// Cuts what was sent within the last round trip, and is not covered yet, into windows. What is older has been
// acknowledged or found lost by now.
void Controller::plan_tail(TimePoint now) {
  tail_due_.reset();
  while (!bulk_uncovered_.empty() && now - bulk_uncovered_.front() > smoothed_rtt_ + smoothed_rtt_ / 8)
    bulk_uncovered_.pop_front();
  const auto symbols = static_cast<std::uint32_t>(bulk_uncovered_.size());
  bulk_uncovered_.clear();
  if (symbols == 0 || loss_.rate() == 0) return;
  const std::uint32_t blocks = (symbols + kMaxWindow - 1) / kMaxWindow;
  for (std::uint32_t i = 0; i < blocks; ++i) {
    TailBlock block;
    block.begin = bulk_symbols_ - symbols + std::uint64_t{symbols} * i / blocks;
    block.end = bulk_symbols_ - symbols + std::uint64_t{symbols} * (i + 1) / blocks;
    const auto wanted = repairs_for(static_cast<std::uint32_t>(block.end - block.begin), loss_.rate(),
                                    loss_.burst_length(), kTailShortfall, kKeys);
    block.repairs = std::min(wanted, static_cast<std::uint32_t>(std::max(0.0, tail_credit_)));
    tail_credit_ -= block.repairs;
    if (block.repairs > 0) tail_.push_back(block);
  }
}

// ---------------------------------------------------------------- K:M

void Controller::on_fixed(TimePoint now, Mode mode) {
  fixed_mode_ = mode;
  fixed_credit_ +=
      mode.source_packets > 0 ? static_cast<double>(mode.repair_packets) / mode.source_packets : 0;
  Group& group = fixed_;
  group.after_packet = packets_;
  group.after = now;
  ++group.symbols;
  if (!group.due) group.due = now + options_.interactive_deadline - options_.slack;
  if (group.symbols >= mode.source_packets) close_group(Class::fixed, now);
}

// ---------------------------------------------------------------- orders

std::optional<RepairOrder> Controller::poll_order(TimePoint now) {
  if (interactive_.due && now >= *interactive_.due) close_group(Class::interactive, now);
  if (interactive_.ready > 0 && clear_of_burst(interactive_, now)) {
    // As far back as anything may still be missing: a lost message's retransmission comes after a round trip.
    const auto recent = static_cast<std::uint32_t>(
        std::count_if(interactive_sent_.begin(), interactive_sent_.end(),
                      [&](TimePoint sent) { return now - sent <= smoothed_rtt_ + smoothed_rtt_ / 8; }));
    const bool apart = loss_.burst_length() >= kBursty;
    const std::uint32_t repairs = apart ? 1 : std::min(interactive_.ready, kOrderRepairs);
    interactive_.ready -= repairs;
    interactive_.after_packet = packets_;
    interactive_.after = now;
    return order(Class::interactive, std::max(recent, plan_.group), 0, repairs);
  }
  if (fixed_.due && now >= *fixed_.due) close_group(Class::fixed, now);
  if (fixed_.ready > 0) {
    const std::uint32_t repairs = std::min(fixed_.ready, kOrderRepairs);
    fixed_.ready -= repairs;
    return order(Class::fixed, std::min<std::uint32_t>(fixed_mode_.source_packets, kMaxWindow), 0, repairs);
  }
  if (tail_due_ && now >= *tail_due_) plan_tail(now);
  while (!tail_.empty()) {
    TailBlock& block = tail_.front();
    if (bulk_symbols_ - block.begin > options_.kept_symbols) {  // too much has been sent since
      tail_.pop_front();
      continue;
    }
    const std::uint32_t repairs = std::min(block.repairs, kOrderRepairs);
    const auto result = order(Class::bulk, static_cast<std::uint32_t>(block.end - block.begin),
                              static_cast<std::uint32_t>(bulk_symbols_ - block.end), repairs);
    block.repairs -= repairs;
    if (block.repairs == 0) tail_.pop_front();
    return result;
  }
  return std::nullopt;
}

std::optional<RepairOrder> Controller::order(Class of, std::uint32_t symbols, std::uint32_t skip,
                                             std::uint32_t repairs) {
  counters_.repairs[index_of(of)] += repairs;
  return RepairOrder{of, symbols, skip, repairs};
}

std::optional<TimePoint> Controller::next_timeout() const {
  std::optional<TimePoint> next;
  const auto consider = [&](std::optional<TimePoint> t) {
    if (t && (!next || *t < *next)) next = t;
  };
  consider(interactive_.due);
  if (interactive_.ready > 0)
    consider(loss_.burst_length() < kBursty ? interactive_.after : interactive_.after + kBurstTime);
  consider(fixed_.due);
  if (fixed_.ready > 0) consider(fixed_.after);
  consider(tail_due_);
  if (!tail_.empty()) consider(TimePoint::min());
  return next;
}

}  // namespace longhaul::fec
