// What lies behind an Engine.
#pragma once

#include <memory>

#include "engine/open_model.h"
#include "engine/prompts.h"
#include "tandem/engine.h"
#include "text/generation_config.h"

namespace tandem {

struct Engine::State {
  engine::OpenedModel opened;
  engine::Prompts prompts;
  text::GenerationConfig defaults;
  EngineInfo info;
  // Made at open, which compiles every kernel; the first session takes it.
  std::unique_ptr<model::Sequence> first;
};

}  // namespace tandem
