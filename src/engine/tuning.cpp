#include "engine/tuning.h"

#include "base/clock.h"
#include "base/error.h"
#include "engine/tuning_file.h"

namespace tandem::engine {
namespace {

template <class... Args>
void note(const EngineOptions& options, fmt::format_string<Args...> format, Args&&... args) {
  if (options.on_note) options.on_note(fmt::format(format, std::forward<Args>(args)...));
}

ops::Tilings tilings(const ops::TunedProducts& tuned) {
  ops::Tilings tilings;
  for (const auto& [shape, product] : tuned) tilings[shape] = product.chosen.tiling;
  return tilings;
}

Result<void> take_and_measure(OpenedModel& opened, const EngineOptions& options) {
  ops::TunedProducts tuned = take_tuning(opened, options);
  const double start = now_ms();
  TRY_ASSIGN(const size_t measured, measure_tuning(opened, tuned));
  if (measured == 0) return {};
  const double seconds = (now_ms() - start) / 1e3;
  const gpu::AdapterInfo& adapter = opened.device->info();
  const std::filesystem::path file = tuning_file(options.tuning_folder, adapter);
  const Result<void> kept = write_tuning(file, adapter, tuned);
  note(options, "tuning: measured {} shapes of products on {} in {:.1f} s; {}", measured,
       adapter.name, seconds,
       kept ? fmt::format("kept in {}", file.string())
            : fmt::format("not kept: {}", kept.error().message));
  return {};
}

}  // namespace

Result<void> check_tunable(const gpu::AdapterInfo& adapter) {
  if (!adapter.software && adapter.timestamps) return {};
  return fail(ErrorCode::unsupported,
              "{} {}, so that nothing is measured; choose another --adapter", adapter.name,
              adapter.software ? "is a software adapter" : "has no timestamps");
}

ops::TunedProducts take_tuning(OpenedModel& opened, const EngineOptions& options) {
  const gpu::AdapterInfo& adapter = opened.device->info();
  if (options.tuning_folder.empty()) return {};
  Result<ops::TunedProducts> tuned =
      read_tuning(tuning_file(options.tuning_folder, adapter), adapter);
  if (!tuned) {
    if (tuned.error().code != ErrorCode::not_found)
      note(options, "tuning: {}; ignored", tuned.error().message);
    return {};
  }
  opened.target->set_tilings(tilings(*tuned));
  return std::move(*tuned);
}

Result<size_t> measure_tuning(OpenedModel& opened, ops::TunedProducts& tuned) {
  // A sequence says which products there are.
  TRY(opened.model->new_sequence());
  std::vector<ops::Linear> unknown;
  for (const auto& [shape, product] : opened.target->products()) {
    if (!tuned.contains(shape)) unknown.push_back(product);
  }
  if (unknown.empty()) return size_t{0};
  // As many rows as a round can have, also where this model's have fewer: a shape is cut alike for
  // all, so that all give the same bits.
  TRY_ASSIGN(ops::TunedProducts measured,
             ops::tune(*opened.device, unknown, model::most_drafts + 1));
  tuned.merge(std::move(measured));
  opened.target->set_tilings(tilings(tuned));
  return unknown.size();
}

Result<void> tune(OpenedModel& opened, const EngineOptions& options) {
  if (options.tuning_folder.empty() || !opened.device || !check_tunable(opened.device->info()))
    return {};
  const Result<void> tuned = take_and_measure(opened, options);
  if (tuned || tuned.error().code == ErrorCode::device_lost) return tuned;
  note(options, "tuning: {}", tuned.error().message);
  return {};
}

}  // namespace tandem::engine
