#include "cli/tuning_table.h"

#include <fmt/format.h>

namespace tandem::cli {
namespace {

std::string describe(const ops::Tiling& tiling) {
  return fmt::format("{} {}/{} ahead {}", tiling.units ? "units" : "pieces", tiling.lanes,
                     tiling.workgroup, tiling.ahead);
}

std::string describe(const ops::ProductTime& time) {
  return fmt::format("{:.1f} {:.1f}", time.one, time.few);
}

void print_row(std::string_view shape, std::string_view rules, std::string_view rules_time,
               std::string_view chosen, std::string_view chosen_time) {
  fmt::print("  {:<38} {:<22} {:>13}   {:<22} {:>13}\n", shape, rules, rules_time, chosen,
             chosen_time);
}

}  // namespace

void print_tuning(const engine::OpenedModel& opened, const ops::TunedProducts& tuned) {
  fmt::print("\nproducts of few rows: lanes/workgroup, us of 1 and of {} rows\n",
             model::most_drafts + 1);
  print_row("shape", "rules", "us", "measured", "us");
  for (const auto& [shape, product] : opened.target->products()) {
    const auto found = tuned.find(shape);
    if (found == tuned.end()) {
      print_row(shape, describe(ops::tiling(product, opened.device->info())), "-", "-", "-");
      continue;
    }
    const auto& [rules, chosen] = found->second;
    const bool same = rules.tiling == chosen.tiling;
    print_row(shape, describe(rules.tiling), describe(rules.time),
              same ? "as the rules" : describe(chosen.tiling), same ? "" : describe(chosen.time));
  }
}

}  // namespace tandem::cli
