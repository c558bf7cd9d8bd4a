#include "model/models.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>
#include <string_view>

#include "artifact/artifact.h"
#include "base/half.h"
#include "spec/tensors.h"
#include "support/checkpoint.h"
#include "support/device.h"

namespace tandem::test {
namespace {

uint32_t fnv1a32(std::string_view text) {
  uint32_t hash = 2166136261u;
  for (char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 16777619u;
  return hash;
}

// A value in [-1, 1), as tests/golden/geometry.json defines it.
float hash_value(uint32_t name_hash, uint32_t i, uint32_t seed) {
  uint32_t x = i + (name_hash ^ (seed * 0x9E3779B1u));
  x ^= x >> 16;
  x *= 0x7FEB352Du;
  x ^= x >> 15;
  x *= 0x846CA68Bu;
  x ^= x >> 16;
  return static_cast<float>(x >> 8) * 0x1p-23f - 1;
}

// Of transformers' own name, which has no prefix beside the assistant's inner model.
uint32_t name_hash_of(const spec::Source& source) {
  const bool outside = source.name.starts_with("pre_projection.") ||
                       source.name.starts_with("post_projection.") ||
                       source.name.starts_with("masked_embedding.");
  return fnv1a32((outside ? "" : "model.") + source.name);
}

std::vector<float> hash_row(const spec::Source& source, spec::TensorClass tensor_class,
                            uint32_t row, uint32_t seed) {
  const uint32_t name_hash = name_hash_of(source);
  const bool head_norm = source.name.find("q_norm") != std::string::npos ||
                         source.name.find("k_norm") != std::string::npos;
  const double columns = source.columns;
  const float matrix_scale = static_cast<float>(std::sqrt(3 / columns));
  const float norm_scale = head_norm ? static_cast<float>(std::pow(columns, -0.25)) : 1;
  std::vector<float> values(source.columns);
  for (uint32_t c = 0; c < source.columns; ++c) {
    const float u = hash_value(name_hash, row * source.columns + c, seed);
    values[c] =
        tensor_class == spec::TensorClass::vector ? (1 + 0.25f * u) * norm_scale : u * matrix_scale;
  }
  return values;
}

// The stable ascending argsort of hashes.
std::vector<uint32_t> hash_ordering(uint32_t vocabulary, uint32_t seed) {
  std::vector<float> keys(vocabulary);
  for (uint32_t i = 0; i < vocabulary; ++i)
    keys[i] = hash_value(fnv1a32("token_ordering"), i, seed);
  std::vector<uint32_t> ordering(vocabulary);
  std::iota(ordering.begin(), ordering.end(), 0);
  std::stable_sort(ordering.begin(), ordering.end(),
                   [&](uint32_t a, uint32_t b) { return keys[a] < keys[b]; });
  return ordering;
}

// The source and its row that row `row` of a tensor comes from.
std::pair<const spec::Source*, uint32_t> source_row(const spec::Tensor& tensor, uint32_t row) {
  const auto& sources = tensor.sources;
  if (tensor.join == spec::Join::interleave) {
    return {&sources[row % sources.size()], row / static_cast<uint32_t>(sources.size())};
  }
  for (const spec::Source& source : sources) {
    if (row < source.rows) return {&source, row};
    row -= source.rows;
  }
  return {nullptr, 0};
}

template <class T>
T expect(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return std::move(*result);
}

void expect_done(Result<void> result) {
  if (!result) throw std::runtime_error(result.error().message);
}

// Writes all tensors of a registry that are weights.
void fill_with_hashes(const std::vector<spec::Tensor>& tensors, uint32_t seed,
                      model::Model& destination) {
  for (const spec::Tensor& tensor : tensors) {
    if (tensor.tensor_class == spec::TensorClass::ids) continue;
    for (uint32_t row = 0; row < tensor.rows; ++row) {
      const auto [source, index] = source_row(tensor, row);
      const std::vector<float> values = hash_row(*source, tensor.tensor_class, index, seed);
      expect_done(destination.write(tensor.name + ".values",
                                    uint64_t{row} * tensor.columns * sizeof(float),
                                    std::as_bytes(std::span(values))));
    }
  }
}

std::unique_ptr<model::Model> open_mtp(const spec::Config& config, const model::TensorTypes& types,
                                       const spec::AssistantConfig& assistant, Place place,
                                       model::Capacity capacity) {
  capacity.kv = place == Place::gpu_f16 ? ops::KvType::f16 : ops::KvType::f32;
  if (place == Place::cpu) {
    return expect(model::Reference::open(config, types, capacity, &assistant));
  }
  return expect(model::Target::open(test_device(), config, types,
                                    {.capacity = capacity, .assistant = assistant}));
}

template <class Weights>
std::unique_ptr<model::Model> make_filled(const Weights& weights, const model::TensorTypes& types,
                                          Place place, model::Capacity capacity) {
  capacity.kv = place == Place::gpu_f16 ? ops::KvType::f16 : ops::KvType::f32;
  std::unique_ptr<model::Model> model;
  if (place == Place::cpu) {
    model = expect(model::Reference::open(weights.config, types, capacity));
  } else {
    model =
        expect(model::Target::open(test_device(), weights.config, types, {.capacity = capacity}));
  }
  weights.fill(*model);
  return model;
}

class ModelSink : public artifact::WeightSink {
 public:
  explicit ModelSink(model::Model& model) : model_(model) {}
  Result<void> write(std::string_view plane, uint64_t offset,
                     std::span<const std::byte> bytes) override {
    return model_.write(plane, offset, bytes);
  }

 private:
  model::Model& model_;
};

const artifact::Artifact& atlas_artifact() {
  static const artifact::Artifact artifact =
      expect(artifact::Artifact::open(std::string(TANDEM_SOURCE_DIR) + "/models/atlas"));
  return artifact;
}

spec::WeightType grid_type(const spec::Tensor& tensor) {
  if (tensor.tensor_class == spec::TensorClass::vector) return spec::WeightType::f32;
  return tensor.tensor_class == spec::TensorClass::table ? spec::WeightType::q8_0
                                                         : spec::WeightType::q4_0;
}

// The quants of a row of a matrix or table.
std::vector<std::byte> grid_row(const spec::Source& source, spec::WeightType type, uint32_t row,
                                uint32_t seed) {
  const uint32_t name_hash = name_hash_of(source);
  std::vector<std::byte> quants(spec::planes(type, source.columns)[0].bytes_per_row);
  for (uint32_t c = 0; c < source.columns; ++c) {
    const float u = hash_value(name_hash, row * source.columns + c, seed);
    if (type == spec::WeightType::q8_0) {
      quants[c] = static_cast<std::byte>(static_cast<int>(u * 127));
    } else {
      const auto nibble = static_cast<uint8_t>(std::floor(u * 8) + 8);
      quants[c / 32 * 16 + c % 16] |= static_cast<std::byte>(nibble << (c % 32 < 16 ? 0 : 4));
    }
  }
  return quants;
}

}  // namespace

std::string name(Place place) {
  switch (place) {
    case Place::cpu:
      return "cpu";
    case Place::gpu_f32:
      return "gpu_f32";
    case Place::gpu_f16:
      return "gpu_f16";
  }
  return "";
}

double tolerance(Place place) {
  switch (place) {
    case Place::cpu:
      return 1e-5;
    case Place::gpu_f32:
      return 1e-4;
    case Place::gpu_f16:
      return 1e-3;
  }
  return 0;
}

model::TensorTypes HashModel::types() const {
  model::TensorTypes types;
  for (const spec::Tensor& tensor : spec::tensors(config))
    types[tensor.name] = spec::WeightType::f32;
  return types;
}

void HashModel::fill(model::Model& model) const {
  fill_with_hashes(spec::tensors(config), seed, model);
}

spec::WeightType GridModel::type(const spec::Tensor& tensor) const {
  const bool is_float = !floats.empty() && tensor.name.ends_with(floats);
  return is_float ? spec::WeightType::f32 : grid_type(tensor);
}

model::TensorTypes GridModel::types() const {
  model::TensorTypes types;
  for (const spec::Tensor& tensor : spec::tensors(config)) types[tensor.name] = type(tensor);
  return types;
}

void GridModel::fill(model::Model& model) const {
  for (const spec::Tensor& tensor : spec::tensors(config)) {
    const spec::WeightType type = this->type(tensor);
    if (type == spec::WeightType::f32) {
      fill_with_hashes({tensor}, seed, model);
      continue;
    }
    const double levels = type == spec::WeightType::q8_0 ? 127 : 8;
    const uint16_t scale = to_half(static_cast<float>(std::sqrt(3.0 / tensor.columns) / levels));
    const std::vector<uint16_t> scales(uint64_t{tensor.rows} * (tensor.columns / 32), scale);
    std::vector<std::byte> quants;
    for (uint32_t row = 0; row < tensor.rows; ++row) {
      const auto [source, index] = source_row(tensor, row);
      const std::vector<std::byte> of_row = grid_row(*source, type, index, seed);
      quants.insert(quants.end(), of_row.begin(), of_row.end());
    }
    expect_done(model.write(tensor.name + ".quants", 0, quants));
    expect_done(model.write(tensor.name + ".scales", 0, std::as_bytes(std::span(scales))));
  }
}

model::TensorTypes HashAssistant::types() const {
  model::TensorTypes types;
  for (const spec::Tensor& tensor : spec::tensors(config)) {
    const bool ids = tensor.tensor_class == spec::TensorClass::ids;
    types[tensor.name] = ids ? spec::WeightType::u32 : spec::WeightType::f32;
  }
  return types;
}

void HashAssistant::fill(model::Model& model) const {
  fill_with_hashes(spec::tensors(config), seed, model);
  if (!config.ordered) return;
  const std::vector<uint32_t> ordering = hash_ordering(config.text.vocabulary, target_seed);
  expect_done(
      model.write("assistant.token_ordering.values", 0, std::as_bytes(std::span(ordering))));
}

HashModel tiny_model() { return {expect(spec::read_config(tiny_config({}), "tiny")), 7}; }

HashAssistant tiny_assistant() {
  return {expect(spec::read_assistant_config(tiny_assistant_config(), "tiny assistant")), 8, 7};
}

void Atlas::fill(model::Model& model) const {
  ModelSink sink(model);
  expect_done(artifact::load(atlas_artifact(), sink));
}

const Atlas& atlas() {
  static const Atlas atlas = [] {
    Atlas made{atlas_artifact().config(), {}};
    for (const artifact::TensorEntry& tensor : atlas_artifact().manifest().tensors) {
      made.types[tensor.name] = tensor.type;
    }
    return made;
  }();
  return atlas;
}

std::unique_ptr<model::Model> make_model(const HashModel& model, Place place,
                                         model::Capacity capacity) {
  return make_filled(model, model.types(), place, capacity);
}

std::unique_ptr<model::Model> make_model(const GridModel& model, Place place,
                                         model::Capacity capacity) {
  return make_filled(model, model.types(), place, capacity);
}

std::unique_ptr<model::Model> make_model(const Atlas& atlas, Place place,
                                         model::Capacity capacity) {
  return make_filled(atlas, atlas.types, place, capacity);
}

static std::unique_ptr<model::Model> make_mtp(const HashModel& target,
                                              const HashAssistant& assistant, Place place,
                                              model::Capacity capacity) {
  model::TensorTypes types = target.types();
  types.merge(assistant.types());
  auto model = open_mtp(target.config, types, assistant.config, place, capacity);
  target.fill(*model);
  assistant.fill(*model);
  return model;
}

std::unique_ptr<model::Model> make_tiny_mtp(Place place, model::Capacity capacity) {
  return make_mtp(tiny_model(), tiny_assistant(), place, capacity);
}

std::unique_ptr<model::Model> make_atlas_mtp(Place place, model::Capacity capacity) {
  const artifact::Artifact artifact =
      expect(artifact::Artifact::open(atlas_artifact().folder(), artifact::View::mtp));
  auto model =
      open_mtp(artifact.config(), atlas().types, artifact.manifest().mtp->config, place, capacity);
  ModelSink sink(*model);
  expect_done(artifact::load(artifact, sink));
  return model;
}

static CpuPair as_pair(std::unique_ptr<model::Model> model) {
  CpuPair pair;
  pair.target.reset(dynamic_cast<model::Reference*>(model.release()));
  pair.assistant = pair.target->assistant();
  return pair;
}

CpuPair make_pair(const HashModel& target, const HashAssistant& assistant,
                  model::Capacity capacity) {
  capacity.drafts = model::most_drafts;
  return as_pair(make_mtp(target, assistant, Place::cpu, capacity));
}

CpuPair make_atlas_pair(model::Capacity capacity) {
  capacity.drafts = model::most_drafts;
  return as_pair(make_atlas_mtp(Place::cpu, capacity));
}

std::unique_ptr<model::Target> make_target(const HashModel& model, gpu::Device& device,
                                           const model::TargetOptions& options) {
  auto target = expect(model::Target::open(device, model.config, model.types(), options));
  model.fill(*target);
  return target;
}

std::unique_ptr<model::Target> make_target(const Atlas& atlas, gpu::Device& device,
                                           const model::TargetOptions& options) {
  auto target = expect(model::Target::open(device, atlas.config, atlas.types, options));
  atlas.fill(*target);
  return target;
}

std::unique_ptr<model::Sequence> make_sequence(model::Model& model) {
  return expect(model.sequence());
}

std::vector<uint32_t> greedy(model::Sequence& sequence, std::span<const uint32_t> prompt,
                             uint32_t count, uint32_t position) {
  expect_done(sequence.prefill(position, prompt, {.max_tokens = count}));
  std::vector<uint32_t> ids;
  while (true) {
    const std::optional<model::Round> round = expect(sequence.harvest(true));
    if (!round) return ids;
    ids.insert(ids.end(), round->tokens().begin(), round->tokens().end());
    if (round->stop != ops::StopCode::none) return ids;
    expect_done(sequence.decode());
  }
}

std::vector<float> logits_after(model::Sequence& sequence, std::span<const uint32_t> ids,
                                uint32_t position) {
  greedy(sequence, ids, 1, position);
  return expect(sequence.logits());
}

std::vector<float> all_logits(model::Sequence& sequence, std::span<const uint32_t> ids) {
  std::vector<float> rows;
  expect_done(sequence.score(ids,
                             [&](uint32_t, std::span<const float> logits) -> Result<void> {
                               rows.insert(rows.end(), logits.begin(), logits.end());
                               return {};
                             },
                             {}));
  return rows;
}

}  // namespace tandem::test
