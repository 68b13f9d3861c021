// SPDX-License-Identifier: Apache-2.0
// Restores lost source symbols from repairs, as soon as the received packets determine them, in any order of
// arrival. All input may be hostile; memory and work per packet are bounded by the options.
#pragma once
#include <array>
#include <deque>
#include <optional>
#include <vector>

#include "fec/symbol.h"
#include "fec/symbol_ring.h"

namespace longhaul::fec {

class WindowDecoder {
 public:
  struct Options {
    std::size_t kept_symbols = 256;  // a power of two, at least kMaxWindow; older symbols are forgotten
    std::size_t held_repairs = 64;   // repairs that wait for others; at most 192
  };

  // repairs = recovered + wasted + late + malformed + those still held, which wait for others.
  struct Counters {
    std::uint64_t sources = 0;     // symbols that arrived, each once
    std::uint64_t repairs = 0;     // repairs that arrived
    std::uint64_t recovered = 0;   // symbols restored, each by one repair
    std::uint64_t wasted = 0;      // nothing was missing, or the missing symbol itself arrived
    std::uint64_t late = 0;        // repairs with symbols that were forgotten before they could help
    std::uint64_t malformed = 0;   // repairs that our encoder cannot make
    std::uint64_t came_after = 0;  // symbols that arrived after they had been restored
  };

  // A symbol that was lost and restored. The bytes stay valid until the next call of on_source or on_repair.
  struct Restored {
    SymbolId id;
    Bytes payload;
  };

  WindowDecoder() : WindowDecoder(Options{}) {}
  explicit WindowDecoder(Options);

  // Returns false if the symbol is already known, because it arrived before or was restored (then its frames
  // were processed), or if it is too old. The caller may process the frames anyway: repetitions do no harm to
  // the session.
  bool on_source(SymbolId id, Bytes payload);
  void on_repair(const Repair&);

  // Returns newly restored symbols; call it until it returns nullopt after each on_source and on_repair.
  std::optional<Restored> poll_restored();

  const Counters& counters() const { return counters_; }
  std::size_t held_repairs() const { return rows_.size(); }

 private:
  enum class State : std::uint8_t { missing, arrived, restored };

  // An equation over missing symbols: a coefficient per column, followed by the coded bytes. Rows are kept in
  // reduced echelon form: a row's pivot has the coefficient 1 and occurs in no other row, so a symbol is
  // determined when its row contains only its pivot.
  struct Row {
    AlignedBytes memory;
    std::size_t bytes = 0;  // significant coded bytes
    std::size_t pivot = 0;  // a column
  };
  static constexpr std::size_t kColumns = 256;
  static constexpr std::int16_t kNone = -1;

  bool kept(SymbolId id) const { return id < end_ && end_ - id <= ring_.size(); }
  State& state(SymbolId id) { return states_[id & (ring_.size() - 1)]; }
  std::int16_t& column_of(SymbolId id) { return columns_[id & (ring_.size() - 1)]; }
  void advance_to(SymbolId end);
  void forget(SymbolId id);
  bool add_columns();  // for missing_; false if there is no room
  void release_column(std::size_t column);
  Row take_row(std::size_t bytes);
  void drop_row(std::size_t row);
  void substitute(std::size_t column, SymbolId id);
  void add_row(Row row);
  bool find_pivot(Row& row) const;
  void set_pivot(std::size_t row);
  void restore_determined();
  std::size_t width(std::size_t bytes) const { return kColumns + round_up(bytes); }

  SymbolRing ring_;
  Options options_;
  SymbolId end_ = 0;  // one past the newest known symbol
  std::vector<State> states_;
  std::vector<std::int16_t> columns_;            // column of each kept symbol, or kNone
  std::array<SymbolId, kColumns> column_ids_{};  // the symbol of a column in use
  std::array<bool, kColumns> column_used_{};
  std::array<std::int16_t, kColumns> pivot_row_;  // row with that pivot for each column, or kNone
  std::vector<Row> rows_;
  std::vector<Row> spare_rows_;
  std::size_t row_bytes_ = 0;  // capacity of each row
  // Scratch data of one repair; kept so that repairs do not allocate.
  std::vector<SymbolId> missing_;
  std::vector<const std::uint8_t*> sources_;
  std::vector<std::uint8_t> factors_;
  std::deque<SymbolId> restored_;
  Counters counters_;
};

}  // namespace longhaul::fec
