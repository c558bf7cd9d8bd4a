// Decode computes one row, verification several: row r of a step at position p has the bits of the
// same row alone at position p + r, for every operator that decode uses.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "ops/add_norm/add_norm.h"
#include "ops/argmax/argmax.h"
#include "ops/attention/attention.h"
#include "ops/embedding/embedding.h"
#include "ops/harness.h"
#include "ops/linear/linear.h"
#include "ops/per_layer_input/per_layer_input.h"
#include "ops/qkv_rope/qkv_rope.h"
#include "ops/rms_norm/rms_norm.h"
#include "ops/sample/sample.h"
#include "ops/slice/slice.h"
#include "support/compare.h"
#include "support/device.h"

namespace tandem::ops {
namespace {

constexpr uint32_t most_rows = 4;
// The first row's. Row 2 begins a tile of 64 keys, and row 1 of a ring of 45 slots is in slot 0.
constexpr uint32_t first_position = 1214;

// The buffers of one recorded operator.
class Buffers {
 public:
  template <class T>
  gpu::View in(const std::vector<T>& values) {
    return keep(test::upload(values));
  }
  // Rows first .. first + rows - 1 of `values`, which has most_rows.
  gpu::View in_rows(std::span<const float> values, uint32_t first, uint32_t rows) {
    const size_t size = values.size() / most_rows;
    return keep(test::upload(values.subspan(first * size, rows * size)));
  }
  gpu::View out(uint64_t words) { return keep(test::poisoned(words * 4)); }
  gpu::View step(uint32_t first, uint32_t rows) {
    return keep(test::upload(Step{.position = first_position + first, .rows = rows}));
  }

 private:
  gpu::View keep(gpu::Buffer buffer) {
    buffers_.push_back(std::move(buffer));
    return buffers_.back().view();
  }
  std::vector<gpu::Buffer> buffers_;
};

template <class Op>
void run(const Op& op, uint32_t rows) {
  gpu::CommandList commands(test::test_device());
  test::expect_success(record(commands, op));
  test::run(commands, {.rows = rows, .positions = first_position + most_rows});
}

// What an operator writes for rows first .. first + rows - 1, row by row, in one step.
using Compute = std::function<std::vector<float>(uint32_t first, uint32_t rows)>;

void expect_rows_alone(const std::string& what, const Compute& compute) {
  std::vector<float> alone;
  for (uint32_t row = 0; row < most_rows; ++row) {
    const std::vector<float> y = compute(row, 1);
    alone.insert(alone.end(), y.begin(), y.end());
  }
  ASSERT_TRUE(std::none_of(alone.begin(), alone.end(), test::is_poison)) << what;
  const size_t row_size = alone.size() / most_rows;
  for (uint32_t rows = 2; rows <= most_rows; ++rows) {
    EXPECT_TRUE(test::same_bits(compute(0, rows), std::span(alone).first(rows * row_size)))
        << what << ", " << rows << " rows";
  }
}

TEST(Rows, Embedding) {
  const auto table = test::random_matrix(spec::WeightType::q4_0, 100, 96, 1);
  std::vector<uint32_t> timeline(first_position + most_rows);
  for (uint32_t i = 0; i < timeline.size(); ++i) timeline[i] = i * 37 % 100;
  expect_rows_alone("embedding", [&](uint32_t first, uint32_t rows) {
    Buffers buffers;
    const test::GpuMatrix matrix = test::upload(table, 64);
    const gpu::View y = buffers.out(rows * 96);
    run(Embedding{.table = matrix.matrix,
                  .columns = 96,
                  .scale = 9.7979589f,
                  .step = buffers.step(first, rows),
                  .timeline = buffers.in(timeline),
                  .y = y,
                  .max_rows = rows},
        rows);
    return test::download(y);
  });
}

TEST(Rows, PerLayerInput) {
  constexpr uint32_t layers = 3, width = 40, stride = layers * width;
  const auto context = test::random_floats(most_rows * stride, 1);
  const auto table = test::random_floats(most_rows * stride, 2);
  const auto weight = test::random_floats(width, 3);
  expect_rows_alone("per_layer_input", [&](uint32_t first, uint32_t rows) {
    Buffers buffers;
    const gpu::View y = buffers.out(layers * rows * width);
    run(PerLayerInput{.layers = layers,
                      .width = width,
                      .context_stride = stride,
                      .table_stride = stride,
                      .context_scale = 0.0625f,
                      .epsilon = 1e-6f,
                      .step = buffers.step(first, rows),
                      .context = buffers.in_rows(context, first, rows),
                      .table = buffers.in_rows(table, first, rows),
                      .weight = buffers.in(weight),
                      .y = y,
                      .layer_stride = rows * width,
                      .max_rows = rows},
        rows);
    const std::vector<float> by_layer = test::download(y);
    std::vector<float> by_row;
    for (uint32_t row = 0; row < rows; ++row) {
      for (uint32_t layer = 0; layer < layers; ++layer) {
        const auto begin = by_layer.begin() + (layer * rows + row) * width;
        by_row.insert(by_row.end(), begin, begin + width);
      }
    }
    return by_row;
  });
}

TEST(Rows, RmsNorm) {
  for (uint32_t columns : {128u, 1536u}) {
    const auto x = test::random_floats(most_rows * columns, columns);
    const auto weight = test::random_floats(columns, 3);
    expect_rows_alone("rms_norm", [&](uint32_t first, uint32_t rows) {
      Buffers buffers;
      const gpu::View y = buffers.out(rows * columns);
      run(RmsNorm{.columns = columns,
                  .epsilon = 1e-6f,
                  .step = buffers.step(first, rows),
                  .x = buffers.in_rows(x, first, rows),
                  .weight = buffers.in(weight),
                  .y = y,
                  .max_rows = rows},
          rows);
      return test::download(y);
    });
  }
}

// Rows of (a, b) from rows of a and rows of b.
std::vector<float> interleave(uint32_t rows, std::span<const float> a, std::span<const float> b) {
  std::vector<float> result;
  for (uint32_t row = 0; row < rows; ++row) {
    for (std::span<const float> source : {a, b}) {
      const auto part = source.subspan(row * (source.size() / rows), source.size() / rows);
      result.insert(result.end(), part.begin(), part.end());
    }
  }
  return result;
}

TEST(Rows, AddNorm) {
  constexpr uint32_t columns = 320;
  const auto x = test::random_floats(most_rows * columns, 1);
  const auto h = test::random_floats(most_rows * columns, 2);
  const auto weight = test::random_floats(columns, 3);
  expect_rows_alone("add_norm", [&](uint32_t first, uint32_t rows) {
    Buffers buffers;
    const gpu::View sum = buffers.in_rows(h, first, rows);
    const gpu::View y = buffers.out(rows * columns);
    run(AddNorm{.columns = columns,
                .epsilon = 1e-6f,
                .step = buffers.step(first, rows),
                .x = buffers.in_rows(x, first, rows),
                .weight = buffers.in(weight),
                .scalar = buffers.in(std::vector{0.75f}),
                .h = sum,
                .next_weight = buffers.in(weight),
                .y = y,
                .max_rows = rows},
        rows);
    return interleave(rows, test::download(sum), test::download(y));
  });
}

TEST(Rows, Linear) {
  struct Case {
    spec::WeightType type;
    Epilogue epilogue;
    uint32_t columns;
  };
  for (const auto& [type, epilogue, columns] : {Case{spec::WeightType::q4_0, Epilogue::none, 1536},
                                                {spec::WeightType::q4_0, Epilogue::gelu_pair, 256},
                                                {spec::WeightType::q8_0, Epilogue::gelu_times, 256},
                                                {spec::WeightType::f16, Epilogue::softcap, 96},
                                                {spec::WeightType::f32, Epilogue::none, 44}}) {
    constexpr uint32_t outputs = 66;
    const bool pairs = epilogue == Epilogue::gelu_pair;
    const auto weights = test::random_matrix(type, pairs ? 2 * outputs : outputs, columns, columns);
    const auto x = test::random_floats(most_rows * columns, 1);
    const auto times = test::random_floats(most_rows * outputs, 2);
    // Single rows by the route for one row and by that for several.
    for (RowRoute single : {RowRoute::one, RowRoute::few}) {
      expect_rows_alone(fmt::format("linear {} of {} columns", spec::name(type), columns),
                        [&](uint32_t first, uint32_t rows) {
                          Buffers buffers;
                          const test::GpuMatrix matrix = test::upload(weights);
                          const gpu::View y = buffers.out(rows * outputs);
                          run(Linear{.weights = matrix.matrix,
                                     .epilogue = epilogue,
                                     .rows = rows == 1 ? single : RowRoute::few,
                                     .softcap = 30,
                                     .lanes = 8,
                                     .step = buffers.step(first, rows),
                                     .x = buffers.in_rows(x, first, rows),
                                     .times = buffers.in_rows(times, first, rows),
                                     .y = y,
                                     .max_rows = rows},
                              rows);
                          return test::download(y);
                        });
    }
  }
}

// q, attended values and the row's keys and values, where earlier rows have written their KV.
TEST(Rows, QkvRopeAndAttention) {
  struct Case {
    uint32_t window;
    uint32_t slots;
    KvType type;
  };
  constexpr uint32_t heads = 4, kv_heads = 2, head_dim = 32, pairs = head_dim / 2;
  constexpr uint32_t context = first_position + most_rows;
  const auto qkv = test::random_floats(most_rows * (heads + 2 * kv_heads) * head_dim, 1);
  const auto norm = test::random_floats(head_dim, 2);
  const auto angles = rope_angles({.theta = 10000, .rotated_pairs = pairs}, head_dim, context);
  for (const auto& [window, slots, type] :
       {Case{40, 45, KvType::f16}, {40, 45, KvType::f32}, {0, context, KvType::f16}}) {
    const uint32_t slot_words = kv_heads * head_dim / (type == KvType::f16 ? 2 : 1);
    // Of earlier positions: halves from 0.125 to 2, or floats up to 2.
    std::vector<uint32_t> history(size_t{slots} * slot_words);
    for (uint32_t i = 0; i < history.size(); ++i)
      history[i] = 0x30003000u + (i * 40503u & 0x0fff0fffu);

    const auto compute = [&](uint32_t first, uint32_t rows) {
      Buffers buffers;
      const KvCache kv = {type, slots, buffers.in(history), buffers.in(history)};
      std::vector<float> q, attended;
      const auto compute_step = [&](uint32_t begin, uint32_t count) {
        const gpu::View step = buffers.step(begin, count);
        const gpu::View q_view = buffers.out(count * heads * head_dim);
        const gpu::View y = buffers.out(count * heads * head_dim);
        run(QkvRope{.heads = heads,
                    .kv_heads = kv_heads,
                    .head_dim = head_dim,
                    .rotated_pairs = pairs,
                    .epsilon = 1e-6f,
                    .step = step,
                    .qkv = buffers.in_rows(qkv, begin, count),
                    .q_norm = buffers.in(norm),
                    .k_norm = buffers.in(norm),
                    .angles = buffers.in(angles),
                    .q = q_view,
                    .kv = kv,
                    .max_rows = count},
            count);
        Attention attention = {.heads = heads,
                               .kv_heads = kv_heads,
                               .head_dim = head_dim,
                               .window = window,
                               .positions = context,
                               .route = AttentionRoute::split,
                               .step = step,
                               .q = q_view,
                               .kv = kv,
                               .y = y,
                               .max_rows = count};
        attention.partials = buffers.out(attention_partials_bytes(attention) / 4);
        run(attention, count);
        q = test::download(q_view), attended = test::download(y);
      };
      for (uint32_t row = 0; row < first; ++row) compute_step(row, 1);
      compute_step(first, rows);
      std::vector<float> slots_written;
      for (uint32_t row = 0; row < rows; ++row) {
        const uint64_t slot = (first_position + first + row) % slots;
        for (gpu::View plane : {kv.keys, kv.values}) {
          const auto words = test::download(plane.part(slot * slot_words * 4, slot_words * 4));
          slots_written.insert(slots_written.end(), words.begin(), words.end());
        }
      }
      return interleave(rows, interleave(rows, q, attended), slots_written);
    };
    expect_rows_alone(fmt::format("attention, window {}", window), compute);
  }
}

TEST(Rows, ArgmaxAndSample) {
  constexpr uint32_t columns = 5000, context = first_position + most_rows;
  auto logits = test::random_floats(most_rows * columns, 1, 8);
  for (float& logit : logits) logit = std::round(4 * logit) / 4;  // with ties
  std::vector<uint32_t> timeline(context);
  for (uint32_t i = 0; i < context; ++i) timeline[i] = i * 37 % columns;
  expect_rows_alone("argmax", [&](uint32_t first, uint32_t rows) {
    Buffers buffers;
    const gpu::View index = buffers.out(rows);
    run(Argmax{.columns = columns,
               .step = buffers.step(first, rows),
               .logits = buffers.in_rows(logits, first, rows),
               .partials = buffers.out(argmax_partials_bytes(columns, rows) / 4),
               .index = index,
               .max_rows = rows},
        rows);
    return test::download(index);
  });
  for (uint64_t seed = 0; seed < 2; ++seed) {
    const SampleOptions options = {.temperature = 2,
                                   .top_k = 900,
                                   .top_p = 0.9f,
                                   .min_p = 1e-4f,
                                   .repetition_penalty = 1.3f,
                                   .seed = seed};
    expect_rows_alone("sample", [&](uint32_t first, uint32_t rows) {
      Buffers buffers;
      const gpu::View index = buffers.out(rows);
      run(Sample{.columns = columns,
                 .context = context,
                 .step = buffers.step(first, rows),
                 .logits = buffers.in_rows(logits, first, rows),
                 .timeline = buffers.in(timeline),
                 .settings = buffers.in(std::vector{sample_settings(options, 0)}),
                 .biases = buffers.in(std::vector<TokenBias>(max_biases)),
                 .keys = buffers.out(sample_keys_bytes(columns, rows) / 4),
                 .state = buffers.out(sample_state_bytes(rows) / 4),
                 .partials = buffers.out(sample_partials_bytes(columns, rows) / 4),
                 .index = index,
                 .max_rows = rows},
          rows);
      return test::download(index);
    });
  }
}

TEST(Rows, Slice) {
  const auto x = test::random_floats(most_rows * 300, 1);
  expect_rows_alone("slice", [&](uint32_t first, uint32_t rows) {
    Buffers buffers;
    const gpu::View y = buffers.out(rows * 270);
    run(Slice{.x_stride = 300,
              .first_column = 20,
              .columns = 270,
              .step = buffers.step(first, rows),
              .x = buffers.in_rows(x, first, rows),
              .y = y,
              .max_rows = rows},
        rows);
    return test::download(y);
  });
}

}  // namespace
}  // namespace tandem::ops
