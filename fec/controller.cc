// SPDX-License-Identifier: Apache-2.0
#include "fec/controller.h"

#include <algorithm>
#include <cmath>

#include "fec/redundancy.h"
#include "fec/symbol.h"

namespace longhaul::fec {
namespace {

using namespace std::chrono_literals;

constexpr double kTailShortfall = 2e-3;     // probability per block; a failure costs a round trip
constexpr std::uint32_t kOrderRepairs = 6;  // at once: as many as ISA-L makes in one pass
constexpr double kBursty = 1.3;             // mean burst length above which repairs keep a distance
constexpr Duration kBurstTime = 3ms;        // sufficient distance, even without packets in between
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
  if (traffic == Traffic::bulk) return bulk_pays_ ? std::optional(Class::bulk) : std::nullopt;
  return grouping_.repairs > 0 ? std::optional(Class::interactive) : std::nullopt;
}

void Controller::on_sent(TimePoint now, std::optional<Class> symbol, Mode mode) {
  ++packets_;
  note_pauses(now);
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
  regroup();
}

// ---------------------------------------------------------------- interactive

void Controller::on_interactive(TimePoint now) {
  if (!interactive_sent_.empty()) {
    const Duration gap = std::min<Duration>(now - interactive_sent_.back(), 1s);
    if (gap > 1ms) {  // shorter gaps are within one message
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
  if (!group.due)
    group.due = now + std::max(options_.interactive_deadline - options_.slack,
                               spacing_ * (grouping_.group - 1) + spacing_ / 4);
  // Another message before the deadline shares the repair; if none is expected, waiting gains nothing.
  if (group.symbols >= grouping_.group || spacing_ == Duration{} || now + spacing_ > *group.due)
    close_group(Class::interactive, now);
}

// Recalculates the grouping only after significant changes, because it takes a few microseconds.
void Controller::regroup() {
  const double clustering = bursty() ? loss_.clustering() : 1;
  const Conditions c{.rate = loss_.rate(),
                     .burst = packets_between_ >= 2 * clustering ? 1 : clustering,
                     .spacing_seconds = seconds(spacing_),
                     .deadline_seconds = seconds(options_.interactive_deadline - options_.slack),
                     .late = options_.interactive_late,
                     .round_trip_seconds = seconds(smoothed_rtt_)};
  const auto differs = [](double a, double b) { return std::abs(a - b) > 0.1 * std::max(a, b); };
  if (!differs(c.rate, conditions_.rate) && !differs(c.burst, conditions_.burst) &&
      !differs(c.spacing_seconds, conditions_.spacing_seconds) &&
      !differs(c.round_trip_seconds, conditions_.round_trip_seconds))
    return;
  conditions_ = c;
  grouping_ = cheapest_grouping(c);
  if (spacing_ == Duration{}) grouping_.group = 1;
}

void Controller::close_group(Class of, TimePoint now) {
  Group& group = of == Class::interactive ? interactive_ : fixed_;
  if (of == Class::interactive) {
    group.ready = grouping_.repairs;
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

bool Controller::bursty() const { return loss_.clustering() >= kBursty; }

bool Controller::clear_of_burst(const Group& group, TimePoint now) const {
  return !bursty() || static_cast<double>(packets_ - group.after_packet) >= 2 * loss_.clustering() ||
         now >= group.after + kBurstTime;
}

// ---------------------------------------------------------------- bulk: its tails

void Controller::note_pauses(TimePoint now) {
  if (!busy_since_ || (quiet_since_ && now - *quiet_since_ >= options_.quiet)) busy_since_ = now;
  quiet_since_.reset();
  bulk_pays_ = now - *busy_since_ <= options_.bulk_round_trips * smoothed_rtt_;
}

void Controller::on_bulk(TimePoint now) {
  ++bulk_symbols_;
  tail_due_.reset();
  bulk_uncovered_.push_back(now);
  if (bulk_uncovered_.size() > options_.kept_symbols) bulk_uncovered_.pop_front();
  tail_credit_ = std::min(tail_credit_ + options_.bulk_overhead, kTailCreditCap);
}

void Controller::on_quiet(TimePoint now) {
  if (!quiet_since_) quiet_since_ = now;
  bulk_pays_ = true;
  if (!bulk_uncovered_.empty() && !tail_due_) tail_due_ = now + options_.quiet;
  if (fixed_.symbols > 0 && fixed_.due) fixed_.due = std::min(*fixed_.due, now + options_.quiet);
}

// Divides the packets of the last round trip that are not covered yet into windows. Older packets were
// acknowledged or declared lost by now.
void Controller::plan_tail(TimePoint now) {
  tail_due_.reset();
  while (!bulk_uncovered_.empty() && now - bulk_uncovered_.front() > smoothed_rtt_ + smoothed_rtt_ / 8)
    bulk_uncovered_.pop_front();
  const auto symbols = static_cast<std::uint32_t>(bulk_uncovered_.size());
  bulk_uncovered_.clear();
  if (symbols == 0 || loss_.rate() == 0) return;
  // Without repairs, lost packets would be retransmitted, so that many repairs are free; the others need
  // credit.
  tail_credit_ += loss_.rate() * symbols;
  const std::uint32_t blocks = (symbols + kMaxWindow - 1) / kMaxWindow;
  for (std::uint32_t i = 0; i < blocks; ++i) {
    TailBlock block;
    block.begin = bulk_symbols_ - symbols + std::uint64_t{symbols} * i / blocks;
    block.end = bulk_symbols_ - symbols + std::uint64_t{symbols} * (i + 1) / blocks;
    const auto wanted = repairs_for(static_cast<std::uint32_t>(block.end - block.begin), loss_.rate(),
                                    bursty() ? loss_.clustering() : 1, kTailShortfall, kKeys);
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
    // Covers all symbols that may still be missing: a lost message is retransmitted after a round trip.
    const auto recent = static_cast<std::uint32_t>(
        std::count_if(interactive_sent_.begin(), interactive_sent_.end(),
                      [&](TimePoint sent) { return now - sent <= smoothed_rtt_ + smoothed_rtt_ / 8; }));
    const std::uint32_t repairs = bursty() ? 1 : std::min(interactive_.ready, kOrderRepairs);
    interactive_.ready -= repairs;
    interactive_.after_packet = packets_;
    interactive_.after = now;
    return order(Class::interactive, std::max(recent, grouping_.group), 0, repairs);
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
    if (bulk_symbols_ - block.begin > options_.kept_symbols) {  // too many symbols were sent since
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
  if (interactive_.ready > 0) consider(bursty() ? interactive_.after + kBurstTime : interactive_.after);
  consider(fixed_.due);
  if (fixed_.ready > 0) consider(fixed_.after);
  consider(tail_due_);
  if (!tail_.empty()) consider(TimePoint::min());
  return next;
}

}  // namespace longhaul::fec
