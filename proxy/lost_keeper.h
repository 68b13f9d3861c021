// SPDX-License-Identifier: Apache-2.0
// Writes down which promises were not kept: a line of the log for each loss and each report, and a file that
// is read at the next start, so that a client is told although a daemon was restarted. What is lost and who is
// told is decided in proxy/modules/smb.
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
  // Reads the file. One that cannot be read, or is damaged, is as good as none, and that is logged.
  LostKeeper(boost::asio::io_context& io, std::filesystem::path file, std::shared_ptr<smb::LostWrites> lost);
  ~LostKeeper() override;

  void lost(const smb::LostWrites::File& file, const smb::LostWrites::Loss& loss) override;
  void reported(const smb::LostWrites::File& file, smb::Told how) override;
  void evicted(const smb::LostWrites::File& file) override;
  void changed(const smb::LostWrites& lost) override;

  // Returns when the file says what is known now. Nothing is written afterwards.
  void stop();

 private:
  void write();
  void written(const boost::system::error_code& error);

  boost::asio::io_context& io_;
  std::filesystem::path file_;
  std::shared_ptr<smb::LostWrites> lost_;
  boost::asio::thread_pool writer_{1};  // so that no flow waits for the device
  bool is_behind_ = false;              // the file says something else than is known
  bool writing_ = false, stopped_ = false, complained_ = false;
};

}  // namespace longhaul
