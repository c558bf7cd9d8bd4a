#include "base/sampling.h"

#include "base/error.h"

namespace tandem {
namespace {

bool within(float value, float low, float high) { return value >= low && value <= high; }

}  // namespace

Result<void> check_sampling(const SampleOptions& options) {
  const auto refuse = [](std::string_view name, float value, std::string_view range) {
    return fail(ErrorCode::invalid_argument, "{} must be {}, not {}", name, range, value);
  };
  if (options.temperature != 0 && !within(options.temperature, 1e-6f, 1e6f)) {
    return refuse("temperature", options.temperature, "0 (greedy) or 1e-6 to 1e6");
  }
  if (!(options.top_p > 0 && options.top_p <= 1)) {
    return refuse("top_p", options.top_p, "above 0 and at most 1 (off)");
  }
  if (!within(options.min_p, 0, 1)) {
    return refuse("min_p", options.min_p, "0 (off) to 1");
  }
  if (!within(options.repetition_penalty, 1e-6f, 1e6f)) {
    return refuse("repetition_penalty", options.repetition_penalty, "1e-6 to 1e6 (1 is off)");
  }
  return {};
}

}  // namespace tandem
