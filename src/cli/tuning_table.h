// How a model's products of few rows are cut, for people.
#pragma once

#include "engine/open_model.h"
#include "ops/linear/linear_tuning.h"

namespace tandem::cli {

// A line for each of the model's shapes: what the rules say of it, and what a measurement chose.
void print_tuning(const engine::OpenedModel& opened, const ops::TunedProducts& tuned);

}  // namespace tandem::cli
