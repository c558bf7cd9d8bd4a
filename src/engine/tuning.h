// Has a model's products of few rows run as was measured to be fastest on the device's adapter.
#pragma once

#include "engine/open_model.h"
#include "ops/linear/linear_tuning.h"

namespace tandem::engine {

// Refuses an adapter that runs by the rules alone.
Result<void> check_tunable(const gpu::AdapterInfo& adapter);

// What the options' folder has of the adapter, which the model takes; nothing, with a note, where
// the file is not usable.
ops::TunedProducts take_tuning(OpenedModel& opened, const EngineOptions& options);

// Measures those of the model's products that are not in `tuned`, adds them, and has the model take
// all. Its weights are loaded. Gives the number of those measured.
Result<size_t> measure_tuning(OpenedModel& opened, ops::TunedProducts& tuned);

// The same for an engine that opens: what is kept, the rest by measuring it, which is then kept
// too. What goes wrong is a note; only a lost device is an error.
Result<void> tune(OpenedModel& opened, const EngineOptions& options);

}  // namespace tandem::engine
