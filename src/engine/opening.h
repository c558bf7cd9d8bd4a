// Opens an engine in steps that need not wait: its model's kernels are compiled and tried while
// somebody else loads the weights.
#pragma once

#include <memory>
#include <string_view>

#include "artifact/artifact.h"
#include "engine/open_model.h"
#include "engine/prompts.h"
#include "tandem/engine.h"

namespace tandem::engine {

class Opening {
 public:
  // The artifact must outlive the opening.
  Opening(const artifact::Artifact& artifact, Texts texts, OpenedModel opened);

  OpenedModel& opened() { return opened_; }
  // Goes on with what needs no weights. True once that is done; with `wait` it is done.
  Result<bool> prepare(bool wait);
  // The engine, once it is prepared and all weights have been written, which took `load_ms`.
  // `provenance`: for its info.
  Engine engine(double load_ms, std::string_view provenance = {}) &&;

 private:
  const artifact::Artifact* artifact_;
  Texts texts_;
  OpenedModel opened_;
  std::unique_ptr<model::Sequence> first_;
  double prepare_start_ = 0;
  double prepared_ = 0;
};

// Engine::open with instruments.
Result<Engine> open(const std::string& folder, const EngineOptions& options,
                    const Instruments& instruments);

}  // namespace tandem::engine
