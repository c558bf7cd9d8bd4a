// The plan: every buffer that a model and one sequence need on the GPU, named and sized before
// anything is allocated, and checked against the adapter's limits. Allocation is a loop over it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gpu/device.h"
#include "model/model.h"
#include "spec/tensors.h"

namespace tandem::model {

// The residual step that is left to a product, if one is, and whether it scales h.
enum class TakenStep { none, plain, scaled };

struct PlannedBuffer {
  std::string name;
  uint64_t bytes = 0;
};

// A tensor and how its rows are split: every part but the last has `part_rows` rows.
struct PlannedTensor {
  spec::Tensor tensor;
  spec::WeightType type = spec::WeightType::f32;
  uint32_t part_rows = 0;
  uint32_t parts() const { return (tensor.rows + part_rows - 1) / part_rows; }
};

// A cosine and sine table shared by all layers of one RoPE.
struct PlannedAngles {
  spec::Rope rope;
  uint32_t head_dim = 0;
  bool operator==(const PlannedAngles&) const = default;
};

struct Plan {
  Capacity capacity;
  uint32_t score_rows = 0;  // rows of one band of `score`
  std::vector<PlannedTensor> tensors;
  std::vector<PlannedAngles> angles;
  std::vector<PlannedBuffer> weights;   // part_name() of each part and plane
  std::vector<PlannedBuffer> scratch;   // shared by all sequences: what a step computes with
  std::vector<PlannedBuffer> sequence;  // for each sequence: KV, timeline, step

  uint64_t weight_bytes() const;
  uint64_t scratch_bytes() const;
  uint64_t sequence_bytes() const;
};

// The name of the buffer of one part of a plane.
std::string part_name(std::string_view tensor, std::string_view plane, uint32_t part);

// The index in plan.angles of a layer's table.
uint32_t angles_of(const Plan& plan, const spec::Layer& layer);

// KV slots of a layer: the context for full layers; for sliding ones a ring that keeps the window
// while a chunk is written or rounds run ahead.
uint32_t kv_slots(const spec::Config& config, const spec::Layer& layer, const Capacity& capacity);

// Floats between the layers of the per-layer inputs of `rows` rows: a multiple of the binding
// alignment.
uint32_t per_layer_stride(const spec::Config& config, uint32_t rows);

// `assistant` is needed where there are drafts, and planned only then. Refuses, with the name and
// both numbers: a context over the config's positions, buffers or
// bindings over the limits.
Result<Plan> make_plan(const spec::Config& config, const spec::AssistantConfig* assistant,
                       const TensorTypes& types, const Capacity& capacity,
                       const gpu::Limits& limits);

}  // namespace tandem::model
