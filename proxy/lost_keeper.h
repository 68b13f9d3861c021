// SPDX-License-Identifier: Apache-2.0
// Records promises that were not kept: a log line for each loss and each report, and a file that is read at the
// next start, so that losses are reported across restarts. proxy/modules/smb decides what is lost and which
// client is notified.
#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <filesystem>
#include <memory>
#include <string>

#include "proxy/modules/smb/lost_writes.h"

namespace longhaul {

class LostKeeper final : public smb::LossJournal {
 public:
  // Reads the file. An unreadable or damaged file is logged and ignored.
  LostKeeper(boost::asio::io_context& io, std::filesystem::path file, std::shared_ptr<smb::LostWrites> lost);
  ~LostKeeper() override;

  void lost(const smb::LostWrites::File& file, const smb::LostWrites::Loss& loss) override;
  void reported(const smb::LostWrites::File& file, smb::Told how) override;
  void evicted(const smb::LostWrites::File& file) override;
  void changed(const smb::LostWrites& lost) override;

  // Returns when the file is up to date. Nothing is written afterwards.
  void stop();

 private:
  void write();
  void written(const boost::system::error_code& error);

  boost::asio::io_context& io_;
  std::filesystem::path file_;
  std::shared_ptr<smb::LostWrites> lost_;
  boost::asio::thread_pool writer_{1};  // flows must not wait for the disk
  bool is_behind_ = false;              // the file is out of date
  bool writing_ = false, stopped_ = false, complained_ = false;
};

}  // namespace longhaul
