// What JavaScript says and is told, as strict JSON: the types of web/low_level.d.ts.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "gpu/device.h"
#include "model/plan.h"
#include "tandem/engine.h"

namespace tandem::web {

Result<EngineOptions> read_engine_options(std::string_view json);
Result<gpu::AdapterInfo> read_adapter(std::string_view json);
Result<std::vector<Message>> read_messages(std::string_view json);
// What is left out keeps its default, that of `sampling` where it is of sampling.
Result<GenerateOptions> read_generate_options(std::string_view json, const SampleOptions& sampling);

Json to_json(const EngineInfo& info);
Json to_json(const GenerateStats& stats);
Json to_json(const Generation& generation);

}  // namespace tandem::web
