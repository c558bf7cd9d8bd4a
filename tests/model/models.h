// Models for the model tests: with hash-made weights (tests/golden/geometry.json gives the hash),
// and the atlas.
#pragma once

#include <memory>
#include <string>

#include "gpu/device.h"
#include "model/assistant_reference.h"
#include "model/model.h"
#include "model/reference.h"
#include "model/target.h"

namespace tandem::test {

// Where a model runs: the CPU reference, or the test device with one kind of KV cache.
enum class Place { cpu, gpu_f32, gpu_f16 };
std::string name(Place place);

// How far a tensor may lie from transformers', as a part of its scale.
double tolerance(Place place);

// A config of f32 tensors with hash-made weights.
struct HashModel {
  spec::Config config;
  uint32_t seed = 0;
  model::TensorTypes types() const;
  void fill(model::Model& model) const;
};

// The same with matrices that lie on the grids of Q4_0, tables on those of Q8_0
// (tests/golden/int8.json says how).
struct GridModel {
  spec::Config config;
  uint32_t seed = 0;
  std::string_view floats = {};  // matrices whose names end so are f32
  spec::WeightType type(const spec::Tensor& tensor) const;
  model::TensorTypes types() const;
  void fill(model::Model& model) const;
};

// An assistant of the same kind; its token ordering is made with the target's seed.
struct HashAssistant {
  spec::AssistantConfig config;
  uint32_t seed = 0;
  uint32_t target_seed = 0;
  model::TensorTypes types() const;
  void fill(model::Model& model) const;  // one that was opened for drafts
};

// A model of 6 layers with a window of 8, unlike head dims, 2 KV heads, KV sharing and per-layer
// inputs.
HashModel tiny_model();
// One for it: 2 layers, a sliding and a full one, and an ordered head.
HashAssistant tiny_assistant();

// The atlas as models/atlas holds it.
struct Atlas {
  spec::Config config;
  model::TensorTypes types;
  void fill(model::Model& model) const;
};
const Atlas& atlas();

// A target on the CPU and its assistant, with f32 KV.
struct CpuPair {
  std::unique_ptr<model::Reference> target;
  const model::AssistantReference* assistant = nullptr;  // the target's own
};
CpuPair make_pair(const HashModel& target, const HashAssistant& assistant,
                  model::Capacity capacity);
CpuPair make_atlas_pair(model::Capacity capacity);

std::unique_ptr<model::Model> make_model(const HashModel& model, Place place,
                                         model::Capacity capacity);
std::unique_ptr<model::Model> make_model(const GridModel& model, Place place,
                                         model::Capacity capacity);
std::unique_ptr<model::Model> make_model(const Atlas& atlas, Place place, model::Capacity capacity);

// The same with their assistants; the capacity has drafts. On the GPU they are Targets.
std::unique_ptr<model::Model> make_tiny_mtp(Place place, model::Capacity capacity);
std::unique_ptr<model::Model> make_atlas_mtp(Place place, model::Capacity capacity);

// A target with options of its own on a device of its own choice.
std::unique_ptr<model::Target> make_target(const HashModel& model, gpu::Device& device,
                                           const model::TargetOptions& options);
std::unique_ptr<model::Target> make_target(const Atlas& atlas, gpu::Device& device,
                                           const model::TargetOptions& options);

std::unique_ptr<model::Sequence> make_sequence(model::Model& model);

// The ids that follow a prompt: `count` tokens, or fewer if the sequence stops.
std::vector<uint32_t> greedy(model::Sequence& sequence, std::span<const uint32_t> prompt,
                             uint32_t count, uint32_t position = 0);
// Runs ids without asking for more than the one token that follows, and gives the logits after the
// last.
std::vector<float> logits_after(model::Sequence& sequence, std::span<const uint32_t> ids,
                                uint32_t position = 0);
// All logits rows of `score`.
std::vector<float> all_logits(model::Sequence& sequence, std::span<const uint32_t> ids);

}  // namespace tandem::test
