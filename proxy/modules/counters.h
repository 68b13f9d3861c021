// SPDX-License-Identifier: Apache-2.0
// The counters of one half of a module, the same for every protocol, for one flow or summed over many.
// proxy/control displays them.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

namespace longhaul::modules {

struct Counters {
  std::uint64_t round_trips_saved = 0;   // client requests answered locally
  std::uint64_t ahead_bytes = 0;         // read ahead of client requests
  std::uint64_t ahead_used_bytes = 0;    // of these: requested later
  std::uint64_t ahead_wasted_bytes = 0;  // of these: dropped unused
  std::uint64_t promises_made = 0;       // requests acknowledged before the server acknowledged them
  std::uint64_t promised_bytes = 0;
  std::uint64_t promises_kept = 0;       // acknowledged by the server later
  std::uint64_t promises_failed = 0;     // refused by the server, or the server could no longer be reached
  std::uint64_t late_errors = 0;         // failures reported with a later response
  std::uint64_t unpromised_files = 0;    // files whose writes waited for the server (see the flow's reason)
  std::uint64_t metadata_answers = 0;    // of round_trips_saved: directories, attributes, opens and closes
  std::uint64_t objects_ahead = 0;         // responses fetched ahead of client requests
  std::uint64_t objects_ahead_used = 0;    // of these: requested later
  std::uint64_t objects_ahead_wasted = 0;  // of these: dropped unused
  std::uint64_t opens_ahead = 0;         // files opened ahead of client requests
  std::uint64_t opens_ahead_used = 0;    // of these: opened by the client later
  std::uint64_t opens_ahead_wasted = 0;  // of these: closed unused
  std::uint64_t injected = 0;            // requests that the module sent to the server on its own
  std::uint64_t breaks = 0;              // oplock and lease breaks
  std::uint64_t changes_noticed = 0;     // changes by others without an oplock break; cached data was dropped
  std::uint64_t cache_hits = 0;           // of round_trips_saved: served from the cache locally
  std::uint64_t cache_validations = 0;    // served from the cache after validation
  std::uint64_t cache_bytes = 0;          // content bytes of both
  std::uint64_t cache_disk_reads = 0;     // requests for which a stored response was read from disk
  std::uint64_t steps_aside = 0;  // 1 after this half has left both directions; set by the host

  Counters& operator+=(const Counters& other);
  bool operator==(const Counters&) const = default;
};

struct CounterName {
  std::string_view name;  // in JSON and, with a prefix, in metrics
  std::uint64_t Counters::*value;
  std::string_view help;
};

inline constexpr std::array kCounterNames{
    CounterName{"round_trips_saved", &Counters::round_trips_saved, "Client requests answered locally"},
    CounterName{"ahead_bytes", &Counters::ahead_bytes, "Bytes read ahead of client requests"},
    CounterName{"ahead_used_bytes", &Counters::ahead_used_bytes,
                "Bytes read ahead that a client requested later"},
    CounterName{"ahead_wasted_bytes", &Counters::ahead_wasted_bytes,
                "Bytes read ahead that no client requested"},
    CounterName{"promises_made", &Counters::promises_made,
                "Write requests acknowledged to the client before the server acknowledged them"},
    CounterName{"promised_bytes", &Counters::promised_bytes, "Bytes of writes acknowledged early"},
    CounterName{"promises_kept", &Counters::promises_kept,
                "Early acknowledged requests that the server acknowledged"},
    CounterName{"promises_failed", &Counters::promises_failed, "Early acknowledged requests that failed"},
    CounterName{"late_errors", &Counters::late_errors,
                "Failures of early acknowledged requests reported with a later response"},
    CounterName{"unpromised_files", &Counters::unpromised_files,
                "Files whose writes wait for the server although early acknowledgement is enabled (see the "
                "flow's reason)"},
    CounterName{"metadata_answers", &Counters::metadata_answers,
                "Directory queries, attribute queries, opens and closes answered locally"},
    CounterName{"objects_ahead", &Counters::objects_ahead, "Responses fetched ahead of client requests"},
    CounterName{"objects_ahead_used", &Counters::objects_ahead_used,
                "Responses fetched ahead that a client requested later"},
    CounterName{"objects_ahead_wasted", &Counters::objects_ahead_wasted,
                "Responses fetched ahead that no client requested"},
    CounterName{"opens_ahead", &Counters::opens_ahead, "Files opened ahead of client requests"},
    CounterName{"opens_ahead_used", &Counters::opens_ahead_used,
                "Files opened ahead that a client opened later"},
    CounterName{"opens_ahead_wasted", &Counters::opens_ahead_wasted,
                "Files opened ahead that no client opened"},
    CounterName{"injected", &Counters::injected, "Requests that the module sent to servers on its own"},
    CounterName{"breaks", &Counters::breaks, "Oplock and lease breaks"},
    CounterName{"changes_noticed", &Counters::changes_noticed,
                "Changes by others, outside the protocol or to a directory, that invalidated data or names "
                "read ahead"},
    CounterName{"cache_hits", &Counters::cache_hits, "Requests answered from the cache while that was fresh"},
    CounterName{"cache_validations", &Counters::cache_validations,
                "Requests answered from the cache after the server confirmed it"},
    CounterName{"cache_bytes", &Counters::cache_bytes, "Bytes of content served from the cache"},
    CounterName{"cache_disk_reads", &Counters::cache_disk_reads,
                "Requests for which a stored response was read from disk"},
    CounterName{"steps_aside", &Counters::steps_aside, "Flows that the module stopped optimising"},
};

inline Counters& Counters::operator+=(const Counters& other) {
  for (const CounterName& counter : kCounterNames) this->*counter.value += other.*counter.value;
  return *this;
}

}  // namespace longhaul::modules
