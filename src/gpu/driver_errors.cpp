#include "gpu/driver_errors.h"

#include "base/error.h"

namespace tandem::gpu {

void DriverErrors::store(Error error) {
  if (error.code == ErrorCode::device_lost) return lose(error.message);
  const std::lock_guard lock(mutex_);
  if (!error_) error_ = std::move(error);
}

void DriverErrors::lose(std::string_view reason) {
  const std::lock_guard lock(mutex_);
  if (loss_) return;
  loss_ = Error{ErrorCode::device_lost,
                fmt::format("the GPU device is lost ({}); open it again", reason)};
}

bool DriverErrors::lost() const {
  const std::lock_guard lock(mutex_);
  return loss_.has_value();
}

Result<void> DriverErrors::take() {
  const std::lock_guard lock(mutex_);
  if (loss_) return tl::unexpected<Error>(*loss_);
  if (!error_) return {};
  Error error = *std::move(error_);
  error_.reset();
  return tl::unexpected<Error>(std::move(error));
}

}  // namespace tandem::gpu
