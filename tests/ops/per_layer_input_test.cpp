// The per-layer inputs on the GPU against their reference.
#include "ops/per_layer_input/per_layer_input.h"

#include <gtest/gtest.h>

#include "ops/harness.h"
#include "support/compare.h"

namespace tandem::ops {
namespace {

using test::test_device;

// A norm over at most 300 values in f32, and two roundings after it.
constexpr double tolerance = 1e-6;
constexpr float epsilon = 1e-6f;

struct Case {
  const char* why;
  uint32_t layers, width, live, capacity;
  uint32_t stride = 0;  // of context and table; 0: layers * width
  float magnitude = 1;
};

// [rows][stride] -> [rows][columns]
std::vector<float> dense(const std::vector<float>& values, uint32_t rows, uint32_t stride,
                         uint32_t columns) {
  std::vector<float> result;
  for (uint32_t row = 0; row < rows; ++row) {
    const auto first = values.begin() + size_t{row} * stride;
    result.insert(result.end(), first, first + columns);
  }
  return result;
}

struct Bound {
  PerLayerInput op;
  std::vector<float> host_context, host_table, host_weight;
  gpu::Buffer step, context, table, weight, y;
};

Bound bind(const Case& c) {
  const uint32_t stride = c.stride ? c.stride : c.layers * c.width;
  Bound b;
  b.host_context = test::random_floats(size_t{c.capacity} * stride, 1, c.magnitude);
  b.host_table = test::random_floats(size_t{c.capacity} * stride, 2);
  b.host_weight = test::random_floats(c.width, 3, 2);
  b.step = test::upload(Step{.rows = c.live});
  b.context = test::upload(b.host_context);
  b.table = test::upload(b.host_table);
  b.weight = test::upload(b.host_weight);
  b.y = test::poisoned(uint64_t{c.layers} * c.capacity * c.width * 4);
  b.op = {.layers = c.layers,
          .width = c.width,
          .context_stride = stride,
          .table_stride = stride,
          .context_scale = 0.0625f,
          .epsilon = epsilon,
          .step = b.step.view(),
          .context = b.context.view(),
          .table = b.table.view(),
          .weight = b.weight.view(),
          .y = b.y.view(),
          .layer_stride = c.capacity * c.width,
          .max_rows = c.capacity};
  return b;
}

void expect_inputs(const Case& c) {
  SCOPED_TRACE(c.why);
  const Bound b = bind(c);
  gpu::CommandList commands(test_device());
  test::expect_success(record(commands, b.op));
  test::run(commands, {.rows = c.capacity});
  const std::vector<float> y = test::download(b.y.view());

  std::vector<float> expected(size_t{c.layers} * c.live * c.width);
  per_layer_input_reference(c.live, c.layers, c.width, b.op.context_scale, b.op.epsilon,
                            dense(b.host_context, c.live, b.op.context_stride, c.layers * c.width),
                            dense(b.host_table, c.live, b.op.table_stride, c.layers * c.width),
                            b.host_weight, expected);
  const size_t live = size_t{c.live} * c.width;
  for (uint32_t layer = 0; layer < c.layers; ++layer) {
    const auto slice = std::span(y).subspan(layer * size_t{b.op.layer_stride}, b.op.layer_stride);
    EXPECT_TRUE(
        test::close(slice.first(live), std::span(expected).subspan(layer * live, live), tolerance))
        << "layer " << layer;
    for (float value : slice.subspan(live)) ASSERT_TRUE(test::is_poison(value));
  }
}

TEST(PerLayerInput, ReferenceIsTheDefinition) {
  // Layer 0: mean square of 0.5 * (6, 8) is 12.5; layer 1: zeros stay zeros.
  const std::vector<float> context = {6, 8, 0, 0}, table = {1, 2, 3, 4}, weight = {1, -1};
  std::vector<float> y(4);
  per_layer_input_reference(1, 2, 2, 0.5f, 0, context, table, weight, std::span(y).first(2));
  EXPECT_TRUE(test::close(std::span(y).first(2), std::vector<float>{1.3071068f, 0.6142136f}, 1e-6));
  per_layer_input_reference(1, 2, 2, 0.5f, 1e-6, context, table, weight, y);
  EXPECT_TRUE(test::close(std::span(y).last(2), std::vector<float>{2.1213203f, 2.8284271f}, 1e-6));
}

TEST(PerLayerInput, AgreesWithItsReference) {
  const Case cases[] = {
      {"the atlas's slices: narrower than a workgroup", 10, 32, 3, 5},
      {"E2B's slices: several turns", 5, 256, 2, 2},
      {"a width that is no multiple of the workgroup", 3, 300, 2, 3},
      {"one layer, one row", 1, 64, 1, 1},
      {"leading layers of wider rows", 4, 32, 3, 4, 10 * 32},
      {"no row", 4, 32, 0, 3},
      {"many rows", 2, 32, 70, 71},
      {"magnitudes of 1e5", 3, 256, 2, 2, 0, 1e5f},
      {"values so small that epsilon shows", 3, 32, 2, 2, 0, 1e-3f},
  };
  for (const Case& c : cases) expect_inputs(c);
}

TEST(PerLayerInput, RefusesWhatDoesNotFit) {
  struct Refusal {
    const char* why;
    void (*spoil)(PerLayerInput&);
  };
  const Refusal refusals[] = {
      {"context is too small", [](PerLayerInput& op) { op.context.bytes -= 4; }},
      {"table is too small", [](PerLayerInput& op) { op.table.bytes -= 4; }},
      {"weight is too small", [](PerLayerInput& op) { op.weight.bytes -= 4; }},
      {"y is too small", [](PerLayerInput& op) { op.y.bytes -= 4; }},
      {"rows overlap", [](PerLayerInput& op) { op.context_stride -= 1; }},
      {"layers overlap", [](PerLayerInput& op) { op.layer_stride -= 1; }}};
  for (const Refusal& refusal : refusals) {
    Bound b = bind({"", 3, 32, 2, 2});
    gpu::CommandList commands(test_device());
    EXPECT_TRUE(record(commands, b.op)) << refusal.why;
    refusal.spoil(b.op);
    EXPECT_FALSE(record(commands, b.op)) << refusal.why;
  }
}

}  // namespace
}  // namespace tandem::ops
