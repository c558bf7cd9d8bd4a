// Private to the implementations of device.h: what the driver reports outside of any call.
#pragma once

#include <mutex>
#include <optional>
#include <string_view>

#include "tandem/error.h"

namespace tandem::gpu {

// Errors may be stored from any thread.
class DriverErrors {
 public:
  void store(Error error);
  void lose(std::string_view reason);
  bool lost() const;
  // The loss of the device, or else the oldest error stored, which is thereby reported.
  Result<void> take();

 private:
  mutable std::mutex mutex_;
  std::optional<Error> error_;
  std::optional<Error> loss_;
};

}  // namespace tandem::gpu
