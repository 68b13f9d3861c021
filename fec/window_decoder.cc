// SPDX-License-Identifier: Apache-2.0
#include "fec/window_decoder.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "fec/field.h"

namespace longhaul::fec {
namespace {

bool all_zero(const std::uint8_t* bytes, std::size_t count) {
  std::uint64_t seen = 0;
  for (; count >= 8; bytes += 8, count -= 8) {
    std::uint64_t word;
    std::memcpy(&word, bytes, 8);
    seen |= word;
  }
  for (; count > 0; ++bytes, --count) seen |= *bytes;
  return seen == 0;
}

}  // namespace

WindowDecoder::WindowDecoder(Options options)
    : ring_(options.kept_symbols),
      options_(options),
      states_(options.kept_symbols, State::missing),
      columns_(options.kept_symbols, kNone) {
  assert(options.kept_symbols >= kMaxWindow && options.held_repairs >= 1 && options.held_repairs <= 192);
  pivot_row_.fill(kNone);
}

bool WindowDecoder::on_source(SymbolId id, Bytes payload) {
  if (id > kMaxSymbolId || payload.size() > kMaxPayload) return false;
  if (id >= end_) advance_to(id + 1);
  if (!kept(id)) return false;
  State& s = state(id);
  if (s != State::missing) {
    if (s == State::restored) ++counters_.came_after;
    return false;
  }
  ring_.put(id, std::span(&payload, 1));
  s = State::arrived;
  ++counters_.sources;
  if (const std::int16_t column = column_of(id); column != kNone) {
    substitute(static_cast<std::size_t>(column), id);
    restore_determined();
  }
  return true;
}

void WindowDecoder::on_repair(const Repair& repair) {
  ++counters_.repairs;
  const Window window = repair.window;
  const std::size_t bytes = repair.coded.size();
  if (window.count == 0 || window.count > kMaxWindow || window.first > kMaxSymbolId - window.count ||
      repair.key >= kKeys || bytes < kLengthBytes || bytes > kLengthBytes + kMaxPayload) {
    ++counters_.malformed;
    return;
  }
  const SymbolId end = window.first + window.count;
  if (end > end_) advance_to(end);
  if (!kept(window.first)) {
    ++counters_.late;
    return;
  }
  missing_.clear();
  for (SymbolId id = window.first; id < end; ++id)
    if (state(id) == State::missing) missing_.push_back(id);
  if (missing_.empty()) {
    ++counters_.wasted;
    return;
  }

  // Known symbols are subtracted from the repair; the rest is an equation for the missing ones.
  const std::size_t rounded = round_up(bytes);
  sources_.clear();
  factors_.resize(window.count);
  coefficients(repair.key, window, factors_.data());
  for (std::uint32_t i = 0; i < window.count; ++i) {
    const SymbolId id = window.first + i;
    if (state(id) == State::missing) continue;
    if (ring_.coded_bytes(id) > bytes) {  // a repair is as long as the longest symbol of its window
      ++counters_.malformed;
      return;
    }
    factors_[sources_.size()] = factors_[i];
    sources_.push_back(ring_.padded(id, rounded));
  }
  if (!add_columns()) {
    ++counters_.late;
    return;
  }
  Row row = take_row(bytes);
  std::uint8_t* const equation = row.memory.get();
  std::uint8_t* const coded = equation + kColumns;
  std::memcpy(coded, repair.coded.data(), bytes);
  for (const SymbolId id : missing_) equation[column_of(id)] = coefficient(repair.key, id);
  arithmetic().add_combinations(std::span(&coded, 1), sources_, factors_.data(), rounded);
  for (const SymbolId id : missing_) {
    const auto column = static_cast<std::size_t>(column_of(id));
    if (pivot_row_[column] == kNone) continue;
    const Row& other = rows_[static_cast<std::size_t>(pivot_row_[column])];
    row.bytes = std::max(row.bytes, other.bytes);
    arithmetic().multiply_add(equation, equation[column], other.memory.get(), width(other.bytes));
  }
  add_row(std::move(row));
  restore_determined();
}

std::optional<WindowDecoder::Restored> WindowDecoder::poll_restored() {
  while (!restored_.empty()) {
    const SymbolId id = restored_.front();
    restored_.pop_front();
    if (kept(id)) return Restored{id, ring_.payload(id)};
  }
  return std::nullopt;
}

void WindowDecoder::advance_to(SymbolId end) {
  if (end - end_ >= ring_.size()) {
    counters_.late += rows_.size();
    while (!rows_.empty()) drop_row(rows_.size() - 1);
    for (std::size_t column = 0; column < kColumns; ++column) column_used_[column] = false;
    std::fill(states_.begin(), states_.end(), State::missing);
    std::fill(columns_.begin(), columns_.end(), kNone);
    end_ = end;
    return;
  }
  for (; end_ < end; ++end_) {
    if (end_ >= ring_.size()) forget(end_ - ring_.size());
    state(end_) = State::missing;
  }
}

// A symbol that can no longer be restored removes one equation; the others remain.
void WindowDecoder::forget(SymbolId id) {
  if (column_of(id) == kNone) return;
  const auto column = static_cast<std::size_t>(column_of(id));
  std::size_t row = rows_.size();
  if (pivot_row_[column] != kNone) {
    row = static_cast<std::size_t>(pivot_row_[column]);
  } else {
    for (std::size_t i = 0; i < rows_.size(); ++i)
      if (rows_[i].memory[column] != 0) row = i;
    if (row < rows_.size()) {
      pivot_row_[rows_[row].pivot] = kNone;
      rows_[row].pivot = column;
      set_pivot(row);
    }
  }
  if (row < rows_.size()) {
    drop_row(row);
    ++counters_.late;
  }
  release_column(column);
}

bool WindowDecoder::add_columns() {
  std::size_t next = 0;
  bool collected = false;
  for (const SymbolId id : missing_) {
    if (column_of(id) != kNone) continue;
    while (next < kColumns && column_used_[next]) ++next;
    if (next == kColumns && !collected) {
      // Columns are kept longer than the rows that needed them: until their symbols arrive or are forgotten.
      collected = true;
      for (std::size_t column = 0; column < kColumns; ++column) {
        if (std::none_of(rows_.begin(), rows_.end(),
                         [&](const Row& row) { return row.memory[column] != 0; }) &&
            !std::binary_search(missing_.begin(), missing_.end(), column_ids_[column]))
          release_column(column);
      }
      next = 0;
      while (next < kColumns && column_used_[next]) ++next;
    }
    if (next == kColumns) return false;
    column_used_[next] = true;
    column_ids_[next] = id;
    column_of(id) = static_cast<std::int16_t>(next);
  }
  return true;
}

void WindowDecoder::release_column(std::size_t column) {
  column_of(column_ids_[column]) = kNone;
  column_used_[column] = false;
  pivot_row_[column] = kNone;
}

WindowDecoder::Row WindowDecoder::take_row(std::size_t bytes) {
  if (round_up(bytes) > row_bytes_) {
    row_bytes_ = round_up(bytes);
    spare_rows_.clear();
    for (Row& row : rows_) {
      AlignedBytes larger = aligned_bytes(kColumns + row_bytes_);
      std::memcpy(larger.get(), row.memory.get(), width(row.bytes));
      row.memory = std::move(larger);
    }
  }
  Row row;
  if (spare_rows_.empty()) {
    row.memory = aligned_bytes(kColumns + row_bytes_);
  } else {
    row = std::move(spare_rows_.back());
    spare_rows_.pop_back();
    std::memset(row.memory.get(), 0, kColumns + row_bytes_);
  }
  row.bytes = bytes;
  return row;
}

void WindowDecoder::drop_row(std::size_t row) {
  pivot_row_[rows_[row].pivot] = kNone;
  spare_rows_.push_back(std::move(rows_[row]));
  if (row + 1 != rows_.size()) {
    rows_[row] = std::move(rows_.back());
    pivot_row_[rows_[row].pivot] = static_cast<std::int16_t>(row);
  }
  rows_.pop_back();
}

// A missing symbol has arrived: it is subtracted from every equation.
void WindowDecoder::substitute(std::size_t column, SymbolId id) {
  for (std::size_t i = 0; i < rows_.size();) {
    Row& row = rows_[i];
    const std::uint8_t c = row.memory[column];
    if (c == 0) {
      ++i;
      continue;
    }
    const std::size_t bytes = ring_.coded_bytes(id);
    if (bytes > row.bytes) {  // the repair was shorter than a symbol of its window
      drop_row(i);
      ++counters_.malformed;
      continue;
    }
    row.memory[column] = 0;
    arithmetic().multiply_add(row.memory.get() + kColumns, c, ring_.padded(id, round_up(bytes)),
                              round_up(bytes));
    if (row.pivot != column) {
      ++i;
      continue;
    }
    pivot_row_[column] = kNone;
    if (find_pivot(row)) {
      set_pivot(i);
      ++i;
    } else {
      drop_row(i);
      ++counters_.wasted;
    }
  }
  release_column(column);
}

void WindowDecoder::add_row(Row row) {
  if (!find_pivot(row)) {  // a linear combination of existing rows
    spare_rows_.push_back(std::move(row));
    ++counters_.wasted;
    return;
  }
  if (rows_.size() == options_.held_repairs) {
    std::size_t oldest = 0;
    for (std::size_t i = 1; i < rows_.size(); ++i)
      if (column_ids_[rows_[i].pivot] < column_ids_[rows_[oldest].pivot]) oldest = i;
    drop_row(oldest);
    ++counters_.late;
  }
  rows_.push_back(std::move(row));
  set_pivot(rows_.size() - 1);
}

// Chooses the oldest symbol, because streams need the oldest data first.
bool WindowDecoder::find_pivot(Row& row) const {
  bool found = false;
  for (std::size_t at = 0; at < kColumns; at += 8) {
    if (all_zero(row.memory.get() + at, 8)) continue;
    for (std::size_t column = at; column < at + 8; ++column) {
      if (row.memory[column] == 0) continue;
      if (!found || column_ids_[column] < column_ids_[row.pivot]) row.pivot = column;
      found = true;
    }
  }
  return found;
}

// Makes the row's pivot 1 and eliminates it from the other rows.
void WindowDecoder::set_pivot(std::size_t index) {
  Row& row = rows_[index];
  const std::size_t pivot = row.pivot;
  const std::uint8_t value = row.memory[pivot];
  if (value != 1)
    arithmetic().multiply_add(row.memory.get(), static_cast<std::uint8_t>(inverse(value) ^ 1),
                              row.memory.get(), width(row.bytes));
  pivot_row_[pivot] = static_cast<std::int16_t>(index);
  for (Row& other : rows_) {
    if (&other == &row || other.memory[pivot] == 0) continue;
    arithmetic().multiply_add(other.memory.get(), other.memory[pivot], row.memory.get(), width(row.bytes));
    other.bytes = std::max(other.bytes, row.bytes);
  }
}

void WindowDecoder::restore_determined() {
  for (std::size_t i = 0; i < rows_.size();) {
    Row& row = rows_[i];
    row.memory[row.pivot] = 0;
    const bool determined = all_zero(row.memory.get(), kColumns);
    row.memory[row.pivot] = 1;
    if (!determined) {
      ++i;
      continue;
    }
    const std::size_t column = row.pivot;
    const SymbolId id = column_ids_[column];
    const std::uint8_t* coded = row.memory.get() + kColumns;
    const std::size_t bytes = kLengthBytes + (std::size_t{coded[0]} << 8 | coded[1]);
    if (bytes > row.bytes || !all_zero(coded + bytes, row.bytes - bytes)) {
      drop_row(i);
      ++counters_.malformed;
      continue;
    }
    ring_.put_coded(id, coded, bytes);
    state(id) = State::restored;
    drop_row(i);
    release_column(column);
    ++counters_.recovered;
    if (restored_.size() >= ring_.size()) restored_.pop_front();
    restored_.push_back(id);
  }
}

}  // namespace longhaul::fec
