// SPDX-License-Identifier: Apache-2.0
// Data that a module must have on disk before it continues: text that is appended to a file, for many flows
// at a time. Without I/O; proxy/journal_keeper.h has the file.
#pragma once
#include <functional>
#include <string>
#include <string_view>

namespace longhaul::modules {

class Journal {
 public:
  virtual ~Journal() = default;

  // Restores the text of the previous daemon; called once, before anything else. Returns false if it could
  // not be read.
  virtual bool restore(std::string_view text) = 0;

  struct Batch {
    enum class Place : bool { behind, instead };  // relative to the file's content: append, or replace
    std::string text;
    Place place = Place::behind;
    bool durable = false;  // must survive a power cut when stored() is called
  };
  // Returns everything new. Called on the event loop after the notification of on_new().
  virtual Batch take() = 0;
  // The outcome of that batch. After false, the next batch must be `instead`.
  virtual void stored(bool done) = 0;
  // Sets a callback for the event loop, called whenever take() has something. Without it, nothing is stored.
  virtual void on_new(std::function<void()> call) = 0;
};

}  // namespace longhaul::modules
