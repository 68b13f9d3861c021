// SPDX-License-Identifier: Apache-2.0
// What a module must have on disk before it goes on: text that is appended to a file, for many flows at a
// time. Without I/O; proxy/journal_keeper.h has the file.
#pragma once
#include <functional>
#include <string>
#include <string_view>

namespace longhaul::modules {

class Journal {
 public:
  virtual ~Journal() = default;

  // What the daemon before this one has left; called once, before anything else. False: nothing of it is
  // understood.
  virtual bool restore(std::string_view text) = 0;

  struct Batch {
    enum class Place : bool { behind, instead };  // of what the file holds
    std::string text;
    Place place = Place::behind;
    bool durable = false;  // it is to survive a power cut before stored() is called
  };
  // All that is new. Called on the loop, after on_new() has told of something.
  virtual Batch take() = 0;
  // What became of that batch. False: the next one has to be `instead`.
  virtual void stored(bool done) = 0;
  // The call is made on the loop whenever take() has something. Without one nothing is ever stored.
  virtual void on_new(std::function<void()> call) = 0;
};

}  // namespace longhaul::modules
