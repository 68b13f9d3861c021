// SPDX-License-Identifier: Apache-2.0
// What one half of a module counts, the same few numbers for every protocol: for one flow, or summed over
// many. How they are shown is the business of proxy/control.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

namespace longhaul::modules {

struct Counters {
  std::uint64_t round_trips_saved = 0;   // requests of the client that were answered without the line
  std::uint64_t ahead_bytes = 0;         // fetched before they were asked for
  std::uint64_t ahead_used_bytes = 0;    // of these: asked for afterwards
  std::uint64_t ahead_wasted_bytes = 0;  // of these: dropped unasked
  std::uint64_t promises_made = 0;       // requests acknowledged before the server did
  std::uint64_t promised_bytes = 0;
  std::uint64_t promises_kept = 0;       // the server acknowledged them afterwards
  std::uint64_t promises_failed = 0;     // the server refused them, or could not be asked any more
  std::uint64_t late_errors = 0;         // that were told with a later answer
  std::uint64_t unpromised_files = 0;    // files whose writes waited for the server because of the settings
  std::uint64_t metadata_answers = 0;    // of round_trips_saved: directories, attributes, opens and closes
  std::uint64_t opens_ahead = 0;         // files opened before they were asked for, and offered to the client
  std::uint64_t opens_ahead_used = 0;    // of these: asked for afterwards
  std::uint64_t opens_ahead_wasted = 0;  // of these: closed unasked
  std::uint64_t injected = 0;            // requests of the module's own to the server
  std::uint64_t breaks = 0;              // oplocks, leases and the like that were taken back
  std::uint64_t changes_noticed = 0;     // by others, where no oplock tells: what was known of a file or folder was dropped
  std::uint64_t steps_aside = 0;         // 1 where this half did, both ways; the host counts it

  Counters& operator+=(const Counters& other);
  bool operator==(const Counters&) const = default;
};

struct CounterName {
  std::string_view name;  // in JSON and, with a prefix, in metrics
  std::uint64_t Counters::*value;
  std::string_view help;
};

inline constexpr std::array kCounterNames{
    CounterName{"round_trips_saved", &Counters::round_trips_saved,
                "Requests of clients that were answered without the line"},
    CounterName{"ahead_bytes", &Counters::ahead_bytes, "Bytes fetched before they were asked for"},
    CounterName{"ahead_used_bytes", &Counters::ahead_used_bytes,
                "Bytes fetched ahead that were asked for afterwards"},
    CounterName{"ahead_wasted_bytes", &Counters::ahead_wasted_bytes,
                "Bytes fetched ahead that were dropped unasked"},
    CounterName{"promises_made", &Counters::promises_made, "Requests acknowledged before the server did"},
    CounterName{"promised_bytes", &Counters::promised_bytes, "Bytes acknowledged before the server did"},
    CounterName{"promises_kept", &Counters::promises_kept, "Promises that the server has acknowledged"},
    CounterName{"promises_failed", &Counters::promises_failed, "Promises that could not be kept"},
    CounterName{"late_errors", &Counters::late_errors, "Failed promises told with a later answer"},
    CounterName{"unpromised_files", &Counters::unpromised_files,
                "Files whose writes could be acknowledged early and are not, as the reason of the flow says"},
    CounterName{"metadata_answers", &Counters::metadata_answers,
                "Questions for names and attributes, opens and closes answered without the line"},
    CounterName{"opens_ahead", &Counters::opens_ahead, "Files opened before they were asked for"},
    CounterName{"opens_ahead_used", &Counters::opens_ahead_used,
                "Files opened ahead that were asked for afterwards"},
    CounterName{"opens_ahead_wasted", &Counters::opens_ahead_wasted,
                "Files opened ahead that were closed unasked"},
    CounterName{"injected", &Counters::injected, "Requests of the module's own to servers"},
    CounterName{"breaks", &Counters::breaks, "Oplocks and leases that were taken back"},
    CounterName{"changes_noticed", &Counters::changes_noticed,
                "Changes made by others, without SMB or to a folder, for which data or names ahead were dropped"},
    CounterName{"steps_aside", &Counters::steps_aside, "Flows that the module stepped aside from"},
};

inline Counters& Counters::operator+=(const Counters& other) {
  for (const CounterName& counter : kCounterNames) this->*counter.value += other.*counter.value;
  return *this;
}

}  // namespace longhaul::modules
