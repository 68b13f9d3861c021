// SPDX-License-Identifier: Apache-2.0
// Breadth-first search through all states of a model, so that the way to the first forbidden one is a
// shortest. What a state is, which steps leave it and what is forbidden are the model's.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

namespace longhaul::model {

enum class End : std::uint8_t { holds, breaks, too_many_states };

struct Result {
  End end = End::holds;
  std::size_t states = 0;
  std::string broken;              // which rule
  std::vector<std::string> steps;  // to the state that breaks it
};

// Model:
//   State first() const;
//   void steps(const State&, std::vector<Step>&) const;
//   const char* forbidden(const State&) const;      at any moment; null: nothing
//   const char* forbidden_end(const State&) const;  where nothing moves any more
// Step: `next`, the state behind it; `line()`, its text; `moves`, false for failures and repairs, which may
// never come. State is compared by its bytes, so it has no padding.
template <class Model>
class Explorer {
 public:
  using State = decltype(std::declval<const Model&>().first());
  static_assert(std::has_unique_object_representations_v<State>);

  Explorer(const Model& model, std::size_t most_states) : model_(model), most_states_(most_states) {}

  Result run() {
    index_.assign(1 << 16, 0);
    add(model_.first(), 0);
    for (std::uint32_t at = 0; at < states_.size(); ++at) {
      const State state = states_[at];  // the vector grows
      const char* broken = model_.forbidden(state);
      bool moves = false;
      if (!broken) {
        steps_.clear();
        model_.steps(state, steps_);
        for (const auto& step : steps_) {
          moves = moves || step.moves;
          add(step.next, at);
        }
        if (!moves) broken = model_.forbidden_end(state);
      }
      if (broken) return {End::breaks, states_.size(), broken, way_to(at)};
      if (states_.size() > most_states_) return {End::too_many_states, states_.size(), {}, {}};
    }
    return {End::holds, states_.size(), {}, {}};
  }

 private:
  static std::uint64_t hash(const State& state) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(&state);
    std::uint64_t value = 0x9e3779b97f4a7c15;
    for (std::size_t i = 0; i < sizeof(State); i += 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, bytes + i, std::min<std::size_t>(8, sizeof(State) - i));
      value = (value ^ word) * 0xff51afd7ed558ccd;
      value ^= value >> 32;
    }
    return value;
  }

  // Places hold a state's number plus one.
  void add(const State& state, std::uint32_t from) {
    if (states_.size() * 2 > index_.size()) grow();
    for (std::size_t place = hash(state);; ++place) {
      std::uint32_t& entry = index_[place & (index_.size() - 1)];
      if (entry == 0) {
        states_.push_back(state);
        from_.push_back(from);
        entry = static_cast<std::uint32_t>(states_.size());
        return;
      }
      if (std::memcmp(&states_[entry - 1], &state, sizeof(State)) == 0) return;
    }
  }

  void grow() {
    std::vector<std::uint32_t> larger(index_.size() * 4, 0);
    for (std::uint32_t i = 0; i < states_.size(); ++i) {
      std::size_t place = hash(states_[i]);
      while (larger[place & (larger.size() - 1)] != 0) ++place;
      larger[place & (larger.size() - 1)] = i + 1;
    }
    index_.swap(larger);
  }

  std::vector<std::string> way_to(std::uint32_t at) const {
    std::vector<std::string> lines;
    for (; at != 0; at = from_[at]) {
      std::vector<typename Model::Step> steps;
      model_.steps(states_[from_[at]], steps);
      const auto step = std::find_if(steps.begin(), steps.end(), [&](const auto& each) {
        return std::memcmp(&each.next, &states_[at], sizeof(State)) == 0;
      });
      lines.push_back(step->line());
    }
    std::reverse(lines.begin(), lines.end());
    return lines;
  }

  const Model& model_;
  std::size_t most_states_;
  std::vector<typename Model::Step> steps_;
  std::vector<State> states_;
  std::vector<std::uint32_t> from_, index_;
};

}  // namespace longhaul::model
